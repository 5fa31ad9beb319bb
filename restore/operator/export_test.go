package operator

import (
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
)

// AddNoise turns A(x) into a measurement, in place.
var AddNoise = Noise.add

// Build returns the operator of a built-in task.
func Build(t *testing.T, task string, params map[string]float64, image Shape) *Operator {
	t.Helper()
	op, err := Builtin().New(task, params, image)
	if err != nil {
		t.Fatal(err)
	}
	return op
}

// Forwards returns A of an operator until the test ends.
func Forwards(t *testing.T, op *Operator) *Forward {
	t.Helper()
	f, err := NewForward(onnxtest.Runtime(t), op)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

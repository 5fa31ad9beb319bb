package solver

import (
	"slices"
	"testing"

	"ddiff/restore/method"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/operator"
)

// undeclared is a method that does not declare its gradient through the network.
type undeclared struct{ method.Method }

func (m undeclared) Info() method.Info {
	info := m.Method.Info()
	info.Undivided = ""
	return info
}

// A method that differentiates the network without declaring it gets the network without blocks, and so the result of one that does.
func TestUndeclaredGradient(t *testing.T) {
	t.Parallel()
	op, p := newOperator(t, operator.GaussianDeblur, small), bundled(t)
	dps, err := method.Builtin().Find("dps")
	must(t, err)
	s := resolve(t, method.Request{Method: "dps", Preset: "natural", Task: op.Task, Steps: 3})
	probs := problems(t, op, 2, 0.05)
	var results [2][]Solution
	for i, m := range []method.Method{dps, undeclared{dps}} {
		results[i] = solve(t, compile(t, onnxtest.Runtime(t), planRun(t, m, s, p, op), 2, Build{}), probs)
	}
	for i := range probs {
		if !slices.Equal(results[0][i].X, results[1][i].X) {
			t.Errorf("image %d differs from that of the declared method", i)
		}
	}
}

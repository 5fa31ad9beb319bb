package operator_test

import (
	"errors"
	"strings"
	"testing"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// shifted is y = x + 2·k for one image at a time, with a kernel k of the shape of a row.
func shifted(t *testing.T) *operator.File {
	t.Helper()
	return load(t, fileOf(t, 17, []int{1, 1, 8, 8}, nil, func(g *onnx.Graph, x onnx.Value) {
		k := g.Input("k", onnx.Float, 1, 1, 1, 8)
		g.Output("y", g.Add(x, g.Add(k, k)))
	}))
}

var small = operator.Shape{Channels: 1, Height: 8, Width: 8}

// TestKernelOfEachImage: in a batch, each copy of a file for one image has the kernel of its image.
func TestKernelOfEachImage(t *testing.T) {
	t.Parallel()
	op, err := operator.Set{shifted(t).Definition("shift")}.New("shift", nil, small)
	must(t, err)
	const n = 3
	x, k, seed := normal(n*64, 1, 1), normal(n*8, 2, 1), normal(n*64, 3, 1)
	y, gradient, _ := evaluate(t, op, n, x, seed, seed, k)
	want := make([]float32, len(x))
	for i := range want {
		want[i] = x[i] + 2*k[i/64*8+i%8]
	}
	if e := relative(y, want); !(e <= 1e-6) {
		t.Errorf("y differs by %.2g", e)
	}
	if e := relative(gradient, seed); !(e <= 1e-6) {
		t.Errorf("the gradient differs by %.2g", e)
	}
}

// TestFileFits: a file with its network suits the operator sets in which its operations are equal.
func TestFileFits(t *testing.T) {
	t.Parallel()
	f := shifted(t)
	for _, opset := range []int{onnx.MinOpset, 17, onnx.MaxOpset} {
		if err := f.Fits(opset, 1); err != nil {
			t.Errorf("operator set %d: %v", opset, err)
		}
	}
	if err := f.Outline().Fits(17, 1); !errors.Is(err, operator.ErrFile) || !strings.HasPrefix(err.Error(), "operator own.onnx: ") {
		t.Errorf("an outline: %v", err)
	}
}

// TestForwardSizes: inputs of another length are refused, with their number.
func TestForwardSizes(t *testing.T) {
	t.Parallel()
	op, err := operator.Set{shifted(t).Definition("shift")}.New("shift", nil, small)
	must(t, err)
	f := operator.Forwards(t, op)
	for want, c := range map[string][2]int{
		"input 1 has 63 elements, want 64": {63, 8}, "input 2 has 9 elements, want 8": {64, 9}, "": {64, 8},
	} {
		_, err := f.Apply(t.Context(), make([]float32, c[0]), make([]float32, c[1]))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v elements: %v, want %q", c, err, want)
		}
	}
}

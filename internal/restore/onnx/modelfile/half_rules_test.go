package modelfile_test

import (
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// halved counts the operations of a kind in float16 and in float32.
func halved(m *modelfile.Model, op string) (half, full int) {
	for _, n := range m.Proto().Graph.Node {
		switch {
		case n.OpType != op:
		case strings.HasSuffix(n.Output[0], "/half"):
			half++
		default:
			full++
		}
	}
	return half, full
}

// In the bundled prior, convolutions and the activations between them are in float16; normalisation statistics, the mean
// of the image and the layers of the time are in float32.
func TestHalfOfBundled(t *testing.T) {
	t.Parallel()
	m := modelOf(t, "bundled/prior.onnx")
	h := m.Half()
	for _, c := range []struct {
		op         string
		half, full int
	}{
		{"Conv", 63, 0}, {"Sigmoid", 35, 2}, {"Gemm", 0, 19}, {"ReduceMean", 0, 1}, {"InstanceNormalization", 0, 35}, {"Resize", 2, 0},
	} {
		if half, full := halved(h, c.op); half != c.half || full != c.full {
			t.Errorf("%s: %d in float16, %d in float32; want %d and %d", c.op, half, full, c.half, c.full)
		}
	}
	if again := m.Half(); again != h {
		t.Error("the model is converted twice")
	}
}

// Products of activations, softmax, products with weights outside the range of float16, inputs and outputs stay in
// float32.
func TestHalfRules(t *testing.T) {
	t.Parallel()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, 1, 2, 4, 4)
	weights, large := make([]float32, 16), make([]float32, 16)
	for i := range weights {
		weights[i], large[i] = float32(i), 1e6
	}
	w := g.MatMul(x, g.Const(weights, 4, 4))
	turned := g.Transpose(w, 0, 1, 3, 2)
	scores := g.Mul(g.MatMul(w, turned), g.Scalar(0.5))
	attention := g.Apply("Softmax", onnx.Float, scores.Dims, map[string]any{"axis": 3}, scores)
	y := g.MatMul(g.MatMul(attention, w), g.Const(large, 4, 4))
	sum := g.Add(y, w)
	square := g.Mul(sum, sum)
	g.Output("y", g.Sqrt(square))
	m := onnxtest.Parse(t, g)
	var half []string
	for _, n := range m.Half().Proto().Graph.Node {
		if name, ok := strings.CutSuffix(n.Output[0], "/half"); ok && n.OpType != "Cast" {
			half = append(half, name)
		}
	}
	if want := []string{w.Name, turned.Name, sum.Name, square.Name}; !slices.Equal(half, want) {
		t.Errorf("in float16 are %v, want %v", half, want)
	}
	out := m.Half().Outputs()[0]
	if out.DType != onnx.Float {
		t.Errorf("output of type %d", out.DType)
	}
}

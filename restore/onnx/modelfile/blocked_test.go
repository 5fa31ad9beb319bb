package modelfile_test

import (
	"testing"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/modelfile"
	"ddiff/restore/onnx/onnxtest"
)

// Networks predict the same in the blocked layout as without, for images of one size and of a batch.
func TestInlineNetworkBlocked(t *testing.T) {
	t.Parallel()
	block := onnxtest.Runtime(t).Block()
	if block == 0 {
		t.Skip("the library has no blocked layout on this processor")
	}
	for _, file := range []string{"bundled/prior.onnx", "testdata/attention_17_free.onnx", "testdata/attention_20_free.onnx"} {
		m, _ := modelOf(t, file).FuseGroupNorm()
		for _, n := range []int{1, 2} {
			want, got := networkPredictions(t, m, n, 0), networkPredictions(t, m, n, block)
			worst, largest := farthest(want, got)
			if !(worst <= 2e-5*largest) {
				t.Errorf("%s, batch %d: predictions differ by %.2g of at most %.2g", file, n, worst, largest)
			}
			t.Logf("%s, batch %d: largest difference %.2g of at most %.2g", file, n, worst, largest)
		}
	}
}

// networkPredictions returns the predictions for n images of fixed noise in a layout.
func networkPredictions(t *testing.T, m *modelfile.Model, n, block int) []float32 {
	t.Helper()
	const high, wide = 32, 48
	g := onnx.NewGraph(m.Opset())
	g.Block(block)
	x, in, output := g.Input("x", onnx.Float, n, 3, high, wide), m.Inputs(), m.Outputs()[0]
	y := onnx.Value{Name: "y", DType: onnx.Float, Dims: []int{n, output.Dims[1], high, wide}}
	out, err := g.InlineNetwork(m, map[string]onnx.Value{in[0].Name: x, in[1].Name: g.Ints([]int{40, 700}[:n]...)}, map[string][]int{output.Name: y.Dims})
	must(t, err)
	g.Output(y.Name, out[output.Name])
	return onnxtest.Run(t, g, []onnx.Value{x}, []onnx.Value{y}, onnxtest.Random(x.Size(), 5))[0]
}

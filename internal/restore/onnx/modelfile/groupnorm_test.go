package modelfile_test

import (
	"testing"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// The bundled prior has 35 group normalisations, each before a SiLU, and networks of diffusers with attention 21; rewriting them leaves
// predictions equal.
func TestFuseGroupNorm(t *testing.T) {
	if testing.Short() {
		t.Skip("computes with networks of many kinds: make test-all")
	}
	t.Parallel()
	for file, groups := range map[string]int{
		"bundled/prior.onnx": 35, "testdata/attention_17_free.onnx": 21, "testdata/attention_20_free.onnx": 21,
		"testdata/attention_22_free.onnx": 21,
	} {
		m := modelOf(t, file)
		want := networkPredictions(t, m, 2)
		fused, got := m.FuseGroupNorm()
		if got != groups {
			t.Fatalf("%s: %d normalisations were rewritten, want %d", file, got, groups)
		}
		if again, got := fused.FuseGroupNorm(); got != 0 || again != fused {
			t.Fatalf("%s: %d normalisations were rewritten the second time, want none", file, got)
		}
		worst, _ := farthest(want, networkPredictions(t, fused, 2))
		if !(worst <= 5e-4) {
			t.Errorf("%s: predictions differ by %.2g", file, worst)
		}
		t.Logf("%s: %d normalisations, largest difference %.2g", file, got, worst)
	}
}

// A graph without the pattern stays unchanged.
func TestFuseGroupNormLeavesOthers(t *testing.T) {
	t.Parallel()
	g := onnx.NewGraph(onnx.DefaultOpset)
	g.Output("y", g.Mul(g.Input("x", onnx.Float, 1, 3, 8, 8), g.Scalar(2)))
	m := onnxtest.Parse(t, g)
	if same, got := m.FuseGroupNorm(); got != 0 || same != m {
		t.Errorf("%d normalisations were rewritten, want none", got)
	}
}

// networkPredictions returns the predictions for n images of fixed noise.
func networkPredictions(t *testing.T, m *modelfile.Model, n int) []float32 {
	t.Helper()
	const high, wide = 32, 48
	g := onnx.NewGraph(m.Opset())
	x, in, output := g.Input("x", onnx.Float, n, 3, high, wide), m.Inputs(), m.Outputs()[0]
	y := onnx.Value{Name: "y", DType: onnx.Float, Dims: []int{n, output.Dims[1], high, wide}}
	out, err := g.Inline(m, map[string]onnx.Value{in[0].Name: x, in[1].Name: g.Ints([]int{40, 700}[:n]...)}, map[string][]int{output.Name: y.Dims})
	must(t, err)
	g.Output(y.Name, out[output.Name])
	return onnxtest.Run(t, g, []onnx.Value{x}, []onnx.Value{y}, onnxtest.Random(x.Size(), 5))[0]
}

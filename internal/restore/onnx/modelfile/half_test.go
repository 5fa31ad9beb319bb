package modelfile_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// psnr compares b with a; the peak is the range of a.
func psnr(a, b []float32) float64 {
	lo, hi, sum := math.Inf(1), math.Inf(-1), 0.0
	for i, v := range a {
		lo, hi = min(lo, float64(v)), max(hi, float64(v))
		sum += math.Pow(float64(v-b[i]), 2)
	}
	return 20*math.Log10(hi-lo) - 10*math.Log10(sum/float64(len(a)))
}

// networks returns the score network of the bundled prior and one with attention by the names of their outputs.
func networks(t *testing.T) map[string]*modelfile.Model {
	t.Helper()
	data, err := onnxtest.Network(64)
	must(t, err)
	attention, err := modelfile.ReadModel(data)
	must(t, err)
	return map[string]*modelfile.Model{"bundled": modelOf(t, "bundled/prior.onnx"), "with attention": attention}
}

// Predictions in float16 are close to those in float32, both as this machine computes them and with rounding after each
// operation.
func TestHalfPredictions(t *testing.T) {
	if testing.Short() {
		t.Skip("computes with networks of many kinds: make test-all")
	}
	t.Parallel()
	const n, size = 2, 64
	for network, m := range networks(t) {
		image, steps, output := m.Inputs()[0].Name, m.Inputs()[1].Name, m.Outputs()[0]
		if modelfile.HasHalf(m.Proto().Graph) || !modelfile.HasHalf(m.Half().Proto().Graph) {
			t.Errorf("%s: HasHalf does not tell float16 from float32", network)
		}
		for _, time := range []int{20, 500, 980} {
			predict := func(m *modelfile.Model) []float32 {
				g := onnx.NewGraph(m.Opset())
				x := g.Input("x", onnx.Float, n, 3, size, size)
				y := onnx.Value{Name: "y", DType: onnx.Float, Dims: []int{n, max(3, output.Dims[1]), size, size}}
				out, err := g.Inline(m, map[string]onnx.Value{image: x, steps: g.Ints(time, time)}, map[string][]int{output.Name: y.Dims})
				must(t, err)
				g.Output("y", out[output.Name])
				return onnxtest.Run(t, g, []onnx.Value{x}, []onnx.Value{y}, onnxtest.Random(x.Size(), 5))[0]
			}
			want := predict(m)
			for name, half := range map[string]*modelfile.Model{"here": m.Half(), "rounded": m.HalfRounded()} {
				p := psnr(want, predict(half))
				t.Logf("%s, t = %d, %s: %.1f dB", network, time, name, p)
				if !(p >= 50) || math.IsInf(p, 1) {
					t.Errorf("%s, t = %d, %s: float16 predicts with %.1f dB against float32, want 50 or more, and not equal", network, time, name, p)
				}
			}
		}
	}
}

// The bundled prior predicts in float16 on devices that have it.
func TestWebGPUHalf(t *testing.T) {
	rt := onnxtest.WebGPU(t)
	m := modelOf(t, "bundled/prior.onnx")
	build := func(half bool) (g *onnx.Graph, x, y onnx.Value) {
		g = onnx.NewGraph(m.Opset())
		g.Half(half)
		x = g.Input("x", onnx.Float, 1, 3, 32, 32)
		out, err := g.Inline(m, map[string]onnx.Value{"x": x, "t": g.Ints(500)}, map[string][]int{"z": x.Dims})
		must(t, err)
		g.Output("y", out["z"])
		return g, x, onnx.Value{Name: "y", DType: onnx.Float, Dims: x.Dims}
	}
	g, x, y := build(true)
	model, err := g.Marshal("half")
	must(t, err)
	s, err := rt.NewSession(model, []string{"x"}, []string{"y"})
	if err != nil {
		// Without the feature, the error names it.
		if !errors.Is(err, onnxruntime.ErrRuntime) || !strings.Contains(err.Error(), "requires f16 but the device does not support it") {
			t.Errorf("error %v", err)
		}
		return
	}
	s.Close()
	got := onnxtest.RunOn(t, rt, g, []onnx.Value{x}, []onnx.Value{y}, onnxtest.Random(x.Size(), 5))[0]
	g, x, y = build(false)
	want := onnxtest.Run(t, g, []onnx.Value{x}, []onnx.Value{y}, onnxtest.Random(x.Size(), 5))[0]
	if p := psnr(want, got); !(p >= 50) || math.IsInf(p, 1) {
		t.Errorf("float16 predicts with %.1f dB against float32, want 50 or more, and not equal", p)
	}
}

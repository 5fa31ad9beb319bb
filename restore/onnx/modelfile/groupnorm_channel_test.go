package modelfile_test

import (
	"bytes"
	"testing"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxtest"
)

// A SiLU behind a normalisation is rewritten, and stays accurate for arguments up to 90. A sigmoid with another reader or factor stays.
func TestFuseGroupNormByChannelActivation(t *testing.T) {
	t.Parallel()
	type graph = onnx.Graph
	type value = onnx.Value
	sigmoid := func(g *graph, y value) value { return g.Apply("Sigmoid", onnx.Float, y.Dims, nil, y) }
	for name, c := range map[string]struct {
		activate func(g *graph, x, y value) value
		kept     bool // the sigmoid
	}{
		"silu":             {func(g *graph, _, y value) value { return g.Mul(y, sigmoid(g, y)) }, false},
		"silu, commuted":   {func(g *graph, _, y value) value { return g.Mul(sigmoid(g, y), y) }, false},
		"another factor":   {func(g *graph, x, y value) value { return g.Add(y, g.Mul(x, sigmoid(g, y))) }, true},
		"another reader":   {func(g *graph, _, y value) value { return g.Add(y, g.Mul(y, sigmoid(g, y))) }, true},
		"read twice":       {func(g *graph, _, y value) value { s := sigmoid(g, y); return g.Add(s, g.Mul(y, s)) }, true},
		"no normalisation": {func(g *graph, x, y value) value { return g.Add(y, g.Mul(x, sigmoid(g, x))) }, true},
	} {
		const channels, groups, size = 8, 4, 16
		gamma, ones, zeros := make([]float32, channels), []float32{1, 1, 1, 1}, make([]float32, groups)
		for i := range gamma {
			gamma[i] = float32(3 * (i + 1))
		}
		g := onnx.NewGraph(onnx.DefaultOpset)
		x := g.Input("x", onnx.Float, 2, channels, size, size)
		r := g.Reshape(x, 2, groups, channels/groups*size*size)
		n := g.Apply("InstanceNormalization", onnx.Float, r.Dims, nil, r, g.Const(ones, groups), g.Const(zeros, groups))
		y := g.Add(g.Mul(g.Reshape(n, x.Dims...), g.Const(gamma, channels, 1, 1)), g.Const(gamma, channels, 1, 1))
		g.Output("y", c.activate(g, x, y))
		port := value{Name: "y", DType: onnx.Float, Dims: x.Dims}
		in := onnxtest.Random(x.Size(), 9)
		want := onnxtest.Run(t, g, []value{x}, []value{port}, in)[0]
		m, count := onnxtest.Parse(t, g).FuseGroupNormByChannel()
		if count != 1 {
			t.Fatalf("%s: %d normalisations were rewritten, want 1", name, count)
		}
		g = onnx.NewGraph(onnx.DefaultOpset)
		x = g.Input("x", onnx.Float, x.Dims...)
		out, err := g.Inline(m, map[string]value{"x": x}, map[string][]int{"y": x.Dims})
		must(t, err)
		g.Output("y", out["y"])
		data, err := g.Marshal("m")
		must(t, err)
		if got := bytes.Contains(data, []byte("Sigmoid")); got != c.kept {
			t.Errorf("%s: a sigmoid is kept: %v, want %v", name, got, c.kept)
		}
		got := onnxtest.Run(t, g, []value{x}, []value{port}, in)[0]
		worst, largest := farthest(want, got)
		if !(worst <= 1e-4) || largest < 60 {
			t.Errorf("%s: results up to %.0f differ by %.2g", name, largest, worst)
		}
	}
}

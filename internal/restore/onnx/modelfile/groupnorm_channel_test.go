package modelfile_test

import (
	"bytes"
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// A SiLU behind a normalisation is rewritten, and stays accurate for arguments up to 90. A sigmoid with another reader or factor stays.
func TestFuseGroupNormActivation(t *testing.T) {
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
		m, count := onnxtest.Parse(t, g).FuseGroupNorm()
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

// TestFuseGroupNormMixes: the mixes of few channels are rewritten, with a bias or without, and compute the same; other convolutions stay.
func TestFuseGroupNormMixes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in, out, kernel, groups, stride, pad int
		bias, half                           bool
		kept                                 int // convolutions
	}{
		"colours":      {in: 3, out: 3, kernel: 1, groups: 1, stride: 1},
		"with a bias":  {in: 4, out: 2, kernel: 1, groups: 1, stride: 1, bias: true},
		"half weights": {in: 3, out: 4, kernel: 1, groups: 1, stride: 1, half: true},
		"many":         {in: 5, out: 3, kernel: 1, groups: 1, stride: 1, kept: 1},
		"to many":      {in: 3, out: 8, kernel: 1, groups: 1, stride: 1, kept: 1},
		"by channel":   {in: 2, out: 4, kernel: 1, groups: 2, stride: 1, kept: 1},
		"kernel":       {in: 3, out: 3, kernel: 3, groups: 1, stride: 1, kept: 1},
		"stride":       {in: 3, out: 3, kernel: 1, groups: 1, stride: 2, kept: 1},
		"pad":          {in: 3, out: 3, kernel: 1, groups: 1, stride: 1, pad: 1, kept: 1},
	} {
		const size = 8
		side := (size+2*c.pad-c.kernel)/c.stride + 1
		g := onnx.NewGraph(onnx.DefaultOpset)
		x := g.Input("x", onnx.Float, 2, c.in, size, size)
		ones, zeros := []float32{1}, []float32{0}
		n := g.Apply("InstanceNormalization", onnx.Float, []int{2, 1, c.in * size * size}, nil, g.Reshape(x, 2, 1, c.in*size*size), g.Const(ones, 1), g.Const(zeros, 1))
		scale := g.Const(onnxtest.Random(c.in, 3), c.in, 1, 1)
		y := g.Add(g.Mul(g.Reshape(n, x.Dims...), scale), scale)
		weights := g.Const(onnxtest.Random(c.out*c.in/c.groups*c.kernel*c.kernel, 4), c.out, c.in/c.groups, c.kernel, c.kernel)
		if c.half {
			weights = g.Cast(g.Cast(weights, onnx.Float16), onnx.Float)
		}
		inputs := []onnx.Value{y, weights}
		if c.bias {
			inputs = append(inputs, g.Const(onnxtest.Random(c.out, 5), c.out))
		}
		dims := []int{2, c.out, side, side}
		g.Output("y", g.Apply("Conv", onnx.Float, dims, map[string]any{
			"kernel_shape": []int{c.kernel, c.kernel}, "group": c.groups, "strides": []int{c.stride, c.stride}, "pads": []int{c.pad, c.pad, c.pad, c.pad},
		}, inputs...))
		port := onnx.Value{Name: "y", DType: onnx.Float, Dims: dims}
		in := onnxtest.Random(x.Size(), 9)
		want := onnxtest.Run(t, g, []onnx.Value{x}, []onnx.Value{port}, in)[0]
		m, count := onnxtest.Parse(t, g).FuseGroupNorm()
		if count != 1 {
			t.Fatalf("%s: %d normalisations were rewritten, want 1", name, count)
		}
		convolutions := 0
		for _, n := range m.Proto().Graph.Node {
			if n.OpType == "Conv" {
				convolutions++
			}
		}
		if convolutions != c.kept {
			t.Errorf("%s: %d convolutions stay, want %d", name, convolutions, c.kept)
		}
		g = onnx.NewGraph(onnx.DefaultOpset)
		x = g.Input("x", onnx.Float, x.Dims...)
		made, err := g.Inline(m, map[string]onnx.Value{"x": x}, map[string][]int{"y": dims})
		must(t, err)
		g.Output("y", made["y"])
		if worst, _ := farthest(want, onnxtest.Run(t, g, []onnx.Value{x}, []onnx.Value{port}, in)[0]); !(worst <= 1e-5) {
			t.Errorf("%s: results differ by %.2g", name, worst)
		}
	}
}

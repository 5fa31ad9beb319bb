package modelfile_test

import (
	"testing"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// A normalisation that is one node is rewritten where the number of dimensions of its image follows from the graph, and predicts the same. Others
// stay: with scale and shift by group, of a value whose dimensions are unknown or more than four, and with weights that are computed.
func TestFuseGroupNormNodes(t *testing.T) {
	t.Parallel()
	type graph = onnx.Graph
	type value = onnx.Value
	const channels = 8
	gamma, beta, half := onnxtest.Random(channels, 1), onnxtest.Random(channels, 2), onnxtest.Random(4, 3)
	norm := func(g *graph, x value, attrs map[string]any) value {
		return g.Apply("GroupNormalization", onnx.Float, x.Dims, attrs, x, g.Const(gamma, channels), g.Const(beta, channels))
	}
	groups := func(n int) map[string]any { return map[string]any{"num_groups": n, "epsilon": float32(0.1)} }
	// byTime returns values by channel that depend on the time, as a network's scales and shifts do.
	byTime := func(g *graph, t value, by float32) value {
		e := g.Apply("Cast", onnx.Float, t.Dims, map[string]any{"to": int(onnx.Float)}, t)
		return g.Add(g.Mul(g.Reshape(e, 1, 1, 1, 1), g.Scalar(by)), g.Const(onnxtest.Random(channels, 4), 1, channels, 1, 1))
	}
	for name, c := range map[string]struct {
		opset int
		build func(g *graph, x, t value) value
		want  int
	}{
		"image":            {21, func(g *graph, x, _ value) value { return norm(g, x, groups(4)) }, 1},
		"default epsilon":  {21, func(g *graph, x, _ value) value { return norm(g, x, map[string]any{"num_groups": 2}) }, 1},
		"one group":        {21, func(g *graph, x, _ value) value { return norm(g, x, groups(1)) }, 1},
		"group by channel": {22, func(g *graph, x, _ value) value { return norm(g, x, groups(channels)) }, 1},
		"twice": {21, func(g *graph, x, _ value) value {
			y := norm(g, x, groups(4))
			return norm(g, g.Mul(y, g.Apply("Sigmoid", onnx.Float, y.Dims, nil, y)), groups(2))
		}, 2},
		"scale and shift by the time": {21, func(g *graph, x, t value) value {
			return g.Add(g.Mul(norm(g, x, groups(4)), byTime(g, t, 0.01)), byTime(g, t, 0.02))
		}, 1},
		"scale by the time alone": {21, func(g *graph, x, t value) value { return g.Mul(norm(g, x, groups(4)), byTime(g, t, 0.01)) }, 1},
		"rows of an image": {21, func(g *graph, x, _ value) value {
			return g.Reshape(norm(g, g.Reshape(x, 2, channels, 64), groups(4)), x.Dims...)
		}, 1},
		"rows in another order": {21, func(g *graph, x, _ value) value {
			rows := g.Transpose(g.Transpose(g.Reshape(x, 2, channels, 64), 0, 2, 1), 0, 2, 1)
			return g.Reshape(norm(g, rows, groups(4)), x.Dims...)
		}, 1},
		"image of a computed shape": {21, func(g *graph, x, _ value) value {
			size := g.Apply("Shape", onnx.Int64, []int{4}, nil, x)
			return norm(g, g.Apply("Reshape", onnx.Float, x.Dims, nil, g.Mul(x, g.Scalar(2)), size), groups(4))
		}, 1},
		"image of computed sides": {21, func(g *graph, x, _ value) value {
			begin := g.Apply("Shape", onnx.Int64, []int{2}, map[string]any{"start": 0, "end": 2}, x)
			end := g.Apply("Shape", onnx.Int64, []int{2}, map[string]any{"start": 2}, x)
			size := g.Apply("Concat", onnx.Int64, []int{4}, map[string]any{"axis": 0}, begin, end)
			return norm(g, g.Apply("Reshape", onnx.Float, x.Dims, nil, x, size), groups(4))
		}, 1},
		"scale and shift without a batch": {21, func(g *graph, x, t value) value {
			return g.Add(g.Mul(norm(g, x, groups(4)), g.Reshape(byTime(g, t, 0.01), channels, 1, 1)), g.Reshape(byTime(g, t, 0.02), channels, 1, 1))
		}, 1},
		"scale and shift by one number": {21, func(g *graph, x, t value) value {
			e := g.Apply("Cast", onnx.Float, t.Dims, map[string]any{"to": int(onnx.Float)}, t)
			return g.Add(g.Mul(norm(g, x, groups(4)), g.Reshape(g.Mul(e, g.Scalar(0.01)), 1, 1, 1, 1)), g.Scalar(2))
		}, 1},
		"scale and shift by place": {21, func(g *graph, x, _ value) value {
			return g.Add(g.Mul(norm(g, x, groups(4)), g.Const(onnxtest.Random(8, 6), 8)), g.Const(onnxtest.Random(64, 7), 8, 8))
		}, 1},
		"product of normalisations of the time": {21, func(g *graph, x, t value) value {
			rows := g.Mul(g.Reshape(byTime(g, t, 0.01), 1, channels, 1), g.Const(onnxtest.Random(4, 8), 1, 1, 4))
			both := g.Add(g.Mul(norm(g, rows, groups(4)), norm(g, rows, groups(2))), g.Scalar(2))
			sum := g.Apply("ReduceMean", onnx.Float, []int{1, channels, 1}, nil, both, g.Ints(2))
			return g.Mul(x, g.Reshape(sum, 1, channels, 1, 1))
		}, 2},
		"image without its mean": {21, func(g *graph, x, _ value) value {
			mean := g.Apply("ReduceMean", onnx.Float, []int{2, channels, 1, 1}, nil, x, g.Ints(2, 3))
			return norm(g, g.Minus(x, mean), groups(4))
		}, 1},
		"parts of a shape": {21, func(g *graph, x, _ value) value {
			size := g.Apply("Shape", onnx.Int64, []int{4}, nil, x)
			part := func(from, to int) value {
				return g.Apply("Slice", onnx.Int64, []int{to - from}, nil, size, g.Ints(from), g.Ints(to))
			}
			all := g.Apply("Concat", onnx.Int64, []int{4}, map[string]any{"axis": 0}, part(0, 2), part(2, 3), part(3, 4))
			return norm(g, g.Apply("Reshape", onnx.Float, x.Dims, nil, x, all), groups(4))
		}, 1},
		"volume with a part of a shape": {21, func(g *graph, x, _ value) value {
			size := g.Apply("Shape", onnx.Int64, []int{4}, nil, x)
			part := func(from, to int) value {
				return g.Apply("Slice", onnx.Int64, []int{2}, nil, size, g.Ints(from), g.Ints(to))
			}
			all := g.Apply("Concat", onnx.Int64, []int{5}, map[string]any{"axis": 0}, part(0, 2), g.Ints(1), part(2, 4))
			return g.Reshape(norm(g, g.Apply("Reshape", onnx.Float, []int{2, channels, 1, 8, 8}, nil, x, all), groups(4)), x.Dims...)
		}, 0},
		"volume and an image": {21, func(g *graph, x, _ value) value {
			volume := g.Apply("Expand", onnx.Float, []int{2, channels, 1, 8, 8}, nil, g.Reshape(x, 2, channels, 1, 8, 8), g.Ints(1, 1, 1, 1, 1))
			return g.Reshape(norm(g, g.Mul(volume, g.Const(onnxtest.Random(64, 9), 1, 1, 8, 8)), groups(4)), x.Dims...)
		}, 0},
		"unknown dimensions": {21, func(g *graph, x, _ value) value {
			return norm(g, g.Apply("Shrink", onnx.Float, x.Dims, map[string]any{"lambd": float32(0)}, x), groups(4))
		}, 0},
		"computed weights": {21, func(g *graph, x, _ value) value {
			w := g.Mul(g.Const(gamma, channels), g.Scalar(2))
			return g.Apply("GroupNormalization", onnx.Float, x.Dims, groups(4), x, w, g.Const(beta, channels))
		}, 0},
		"vectors": {21, func(g *graph, x, _ value) value {
			return g.Reshape(norm(g, g.Reshape(x, 2*64, channels), groups(4)), x.Dims...)
		}, 0},
		"weights by group": {18, func(g *graph, x, _ value) value {
			return g.Apply("GroupNormalization", onnx.Float, x.Dims, groups(4), x, g.Const(half, 4), g.Const(half, 4))
		}, 0},
	} {
		g := onnx.NewGraph(c.opset)
		x, at := g.Input("x", onnx.Float, 2, channels, 8, 8), g.Input("t", onnx.Int64, 1)
		// Every file reads the time.
		y := c.build(g, x, at)
		g.Output("y", g.Minus(y, g.Mul(g.Scalar(0), g.Reshape(g.Apply("Cast", onnx.Float, []int{1}, map[string]any{"to": int(onnx.Float)}, at), 1, 1, 1, 1))))
		m := onnxtest.Parse(t, g)
		want := modelPredictions(t, m, x.Dims)
		fused, got := m.FuseGroupNorm()
		if got != c.want {
			t.Errorf("%s: %d normalisations were rewritten, want %d", name, got, c.want)
		}
		if worst, _ := farthest(want, modelPredictions(t, fused, x.Dims)); !(worst <= 1e-5) {
			t.Errorf("%s: predictions differ by %.2g", name, worst)
		}
	}
}

// Files that ONNX Runtime refuses, and lists that double with each node, do not stop the rewriting.
func TestFuseGroupNormOfInvalidFiles(t *testing.T) {
	t.Parallel()
	type graph = onnx.Graph
	type value = onnx.Value
	image := []int{2, 4, 8, 8}
	weights := func(g *graph) value { return g.Const(onnxtest.Random(4, 1), 4) }
	norm := func(g *graph, inputs ...value) value {
		return g.Apply("GroupNormalization", onnx.Float, image, map[string]any{"num_groups": 2}, inputs...)
	}
	for _, build := range map[string]func(g *graph, x value) value{
		"no inputs":    func(g *graph, _ value) value { return norm(g) },
		"weights only": func(g *graph, x value) value { return norm(g, x, weights(g), weights(g), weights(g)) },
		"no groups": func(g *graph, x value) value {
			return g.Apply("GroupNormalization", onnx.Float, image, map[string]any{"num_groups": -1}, x, weights(g), weights(g))
		},
		"shape of nothing": func(g *graph, x value) value {
			size := g.Apply("Shape", onnx.Int64, []int{4}, nil)
			return norm(g, g.Apply("Reshape", onnx.Float, image, nil, x, size), weights(g), weights(g))
		},
		"doubled lists": func(g *graph, x value) value {
			size := g.Apply("Slice", onnx.Int64, []int{0}, nil, g.Ints(1), g.Ints(0), g.Ints(0))
			for range 60 {
				size = g.Apply("Concat", onnx.Int64, []int{0}, map[string]any{"axis": 0}, size, size)
			}
			return norm(g, g.Apply("Reshape", onnx.Float, image, nil, x, size), weights(g), weights(g))
		},
	} {
		g := onnx.NewGraph(21)
		g.Output("y", build(g, g.Input("x", onnx.Float, image...)))
		m := onnxtest.Parse(t, g)
		m.FuseGroupNorm()
	}
}

// modelPredictions are those of a model with inputs x and t and the output y, for one image and time.
func modelPredictions(t *testing.T, m *modelfile.Model, dims []int) []float32 {
	t.Helper()
	g := onnx.NewGraph(m.Opset())
	x := g.Input("x", onnx.Float, dims...)
	out, err := g.Inline(m, map[string]onnx.Value{"x": x, "t": g.Ints(300)}, map[string][]int{"y": dims})
	must(t, err)
	y := onnx.Value{Name: "z", DType: onnx.Float, Dims: dims}
	g.Output(y.Name, out["y"])
	return onnxtest.Run(t, g, []onnx.Value{x}, []onnx.Value{y}, onnxtest.Random(x.Size(), 5))[0]
}

package onnx_test

import (
	"math"
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// indices is an operand of whole numbers of the given shape.
func indices(dims []int, x ...int) operand {
	return operand{value: func(g *onnx.Graph, _ uint32) onnx.Value { return g.Reshape(g.Ints(x...), dims...) }}
}

// moveLayers are operations that the generated graphs do not have.
func moveLayers() map[string]layer {
	type m = map[string]any
	x, at := normal(3, 4), indices(ints(2, 3), 0, 1, 2, 2, 0, 0)
	scatter := apply("ScatterElements", x.dims, m{"axis": 0}, x, at, normal(2, 3))
	sum := apply("ScatterElements", x.dims, m{"axis": 0, "reduction": "add"}, x, indices(ints(2, 3), 0, 1, 2, 0, 1, 0), normal(2, 3))
	sumOfVectors := apply("ScatterND", x.dims, m{"reduction": "add"}, x, indices(ints(3, 1), 2, 0, 2), normal(3, 4))
	return map[string]layer{
		"scatter":            scatter,
		"scatter updates":    scatter.by(2),
		"sum":                sum,
		"sum updates":        sum.by(2),
		"sum of vectors":     sumOfVectors,
		"summed vectors":     sumOfVectors.by(2),
		"gather elements":    apply("GatherElements", ints(2, 3), m{"axis": 0}, x, at),
		"gather vectors":     apply("GatherND", ints(3, 4), nil, x, indices(ints(3, 1), 2, 0, 2)),
		"gather numbers":     apply("GatherND", ints(3), nil, x, indices(ints(3, 2), 2, 3, 0, 0, 2, 3)),
		"cast like":          apply("CastLike", x.dims, nil, x, given(1)).at(15),
		"scatter of vectors": apply("ScatterND", x.dims, nil, x, indices(ints(2, 1), 2, 0), normal(2, 4)).by(2),
	}
}

// TestGatherOfMany: the gradient of many elements makes no matrix of all pairs, which for a third of the pixels of a picture of 256×256 has 5 GB.
func TestGatherOfMany(t *testing.T) {
	t.Parallel()
	const rows, length, columns, count = 2, 2048, 3, 600
	once, again := make([]int, count), make([]int, count)
	for i := range once {
		once[i], again[i] = 3*i, i*i%97-48
	}
	for name, at := range map[string][]int{"once": append(once, 1, -1), "again": again} {
		g := onnx.NewGraph(onnx.DefaultOpset)
		x, seed := g.Input("x", onnx.Float, rows, length, columns), g.Input("seed", onnx.Float, rows, len(at), columns)
		y := g.Apply("Gather", onnx.Float, seed.Dims, map[string]any{"axis": 1}, x, g.Ints(at...))
		d, err := g.Gradient(y, x, seed)
		must(t, err)
		g.Output("d", d)
		product, err := g.Gradient(d, seed, x) // J·x
		must(t, err)
		g.Output("product", product)
		for _, n := range onnxtest.Parse(t, g).Proto().Graph.Node {
			if n.OpType == "OneHot" {
				t.Errorf("%s: the gradient has a matrix of %d×%d", name, length, len(at))
			}
		}
		weights := onnxtest.Random(seed.Size(), 1)
		want := make([]float32, x.Size())
		for i, w := range weights {
			place := (at[i/columns%len(at)] + length) % length
			want[(i/columns/len(at)*length+place)*columns+i%columns] += w
		}
		outputs := []onnx.Value{{Name: "d", DType: onnx.Float, Dims: d.Dims}, {Name: "product", DType: onnx.Float, Dims: product.Dims}}
		values := onnxtest.Random(x.Size(), 2)
		got := onnxtest.Run(t, g, []onnx.Value{x, seed}, outputs, values, weights)
		for i := range want {
			if !(math.Abs(float64(got[0][i]-want[i])) <= 1e-4) {
				t.Fatalf("%s: derivative %d is %v, want %v", name, i, got[0][i], want[i])
			}
		}
		for i, v := range got[1] {
			place := (at[i/columns%len(at)] + length) % length
			if want := values[(i/columns/len(at)*length+place)*columns+i%columns]; v != want {
				t.Fatalf("%s: product %d is %v, want %v", name, i, v, want)
			}
		}
	}
}

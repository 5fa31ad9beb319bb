package onnx_test

import "ddiff/restore/onnx"

// indices is an operand of whole numbers of the given shape.
func indices(dims []int, x ...int) operand {
	return operand{value: func(g *onnx.Graph, _ uint32) onnx.Value { return g.Reshape(g.Ints(x...), dims...) }}
}

// moveLayers are operations that the generated graphs do not have.
func moveLayers() map[string]layer {
	type m = map[string]any
	x, at := normal(3, 4), indices(ints(2, 3), 0, 1, 2, 2, 0, 0)
	scatter := apply("ScatterElements", x.dims, m{"axis": 0}, x, at, normal(2, 3))
	return map[string]layer{
		"scatter":            scatter,
		"scatter updates":    scatter.by(2),
		"gather elements":    apply("GatherElements", ints(2, 3), m{"axis": 0}, x, at),
		"gather vectors":     apply("GatherND", ints(3, 4), nil, x, indices(ints(3, 1), 2, 0, 2)),
		"gather numbers":     apply("GatherND", ints(3), nil, x, indices(ints(3, 2), 2, 3, 0, 0, 2, 3)),
		"cast like":          apply("CastLike", x.dims, nil, x, given(1)).at(15),
		"scatter of vectors": apply("ScatterND", x.dims, nil, x, indices(ints(2, 1), 2, 0), normal(2, 4)).by(2),
	}
}

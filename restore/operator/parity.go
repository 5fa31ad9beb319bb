package operator

import "ddiff/restore/onnx"

// The axes of a batch of images.
const (
	rowAxis = 2
	colAxis = 3
)

// split separates the parities of a value along an axis of even length n: even[i] = v[i] + v[n−1−i] and
// odd[i] = v[i] − v[n−1−i] for i < n/2. A linear map whose rows are symmetric or antisymmetric about the centre needs
// only one of the two, and half the products.
func split(g *onnx.Graph, v onnx.Value, axis int) (even, odd onnx.Value) {
	n := v.Dims[axis]
	head := g.Slice(v, axis, 0, n/2)
	tail := g.Reverse(g.Slice(v, axis, n/2, n), axis)
	return g.Add(head, tail), g.Minus(head, tail)
}

// join concatenates even + odd and the reverse of even − odd along an axis.
func join(g *onnx.Graph, even, odd onnx.Value, axis int) onnx.Value {
	return g.Concat(axis, g.Add(even, odd), g.Reverse(g.Minus(even, odd), axis))
}

// along multiplies an axis of v by m: m·v for rows, v·mᵀ for columns.
func along(g *onnx.Graph, m *matrix, v onnx.Value, axis int) onnx.Value {
	if axis == rowAxis {
		return g.MatMul(m.value(g), v)
	}
	return g.MatMul(v, m.transposed().value(g))
}

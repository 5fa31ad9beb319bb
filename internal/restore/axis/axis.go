// Package axis has linear maps along the axes of a batch of images [N, C, H, W], as parts of ONNX graphs: products with small constant
// matrices and bands of matrices, and filters with a kernel per image.
//
// Images are first split into an even and an odd part about their centre where the matrices are large, which halves every product, see [Split].
// Images with a side above [MaxDense] have maps without matrices of the size of an axis: a [Band] for a [Matrix], a [FourierFilter] for
// a [ReflectFilter]. The package knows no task: package operator gives it weights and kernels. A new kind of map along an axis is a file here.
package axis

import "ddiff/restore/onnx"

// The axes of a batch of images.
const (
	Rows = 2
	Cols = 3
)

// Split separates the parities of a value along an axis of even length n: even[i] = v[i] + v[n−1−i] and
// odd[i] = v[i] − v[n−1−i] for i < n/2. A linear map whose rows are symmetric or antisymmetric about the centre needs
// only one of the two, and half the products.
func Split(g *onnx.Graph, v onnx.Value, axis int) (even, odd onnx.Value) {
	half := v.Dims[axis] / 2
	parts := g.Split(v, axis, half, half) // whose gradient is one Concat
	head, tail := parts[0], g.Reverse(parts[1], axis)
	return g.Add(head, tail), g.Minus(head, tail)
}

// join concatenates even + odd and the reverse of even − odd along an axis.
func join(g *onnx.Graph, even, odd onnx.Value, axis int) onnx.Value {
	return g.Concat(axis, g.Add(even, odd), g.Reverse(g.Minus(even, odd), axis))
}

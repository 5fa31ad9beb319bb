package infer

import "ddiff/internal/restore/onnx/onnxpb"

// DType is the element type of a value.
type DType int32

// The element types that built graphs use.
const (
	Float   DType = DType(onnxpb.TensorProto_FLOAT)
	Float16 DType = DType(onnxpb.TensorProto_FLOAT16) // only inside models
	Int64   DType = DType(onnxpb.TensorProto_INT64)
	Bool    DType = DType(onnxpb.TensorProto_BOOL)
	Double  DType = DType(onnxpb.TensorProto_DOUBLE) // only inside models
	Int32   DType = DType(onnxpb.TensorProto_INT32)  // only inside models
)

// Value is a tensor in a Graph: an input, a constant or the output of an operation.
type Value struct {
	Name  string
	DType DType
	Dims  []int
}

// Size is the number of elements.
func (v Value) Size() int { return Size(v.Dims) }

// Count is the number of elements of a value of a stranger's file, which may be above the largest int.
func (v Value) Count() float64 {
	n := 1.0
	for _, d := range v.Dims {
		n *= float64(d)
	}
	return n
}

// Bytes is the size of all elements.
func (v Value) Bytes() float64 { return bytesOf(v.DType) * v.Count() }

// Rank is the number of dimensions.
func (v Value) Rank() int { return len(v.Dims) }

// Size is the number of elements of a tensor with these dimensions.
func Size(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// Broadcast returns the NumPy broadcast of two shapes, or false if there is none.
func Broadcast(a, b []int) ([]int, bool) {
	n := max(len(a), len(b))
	out := make([]int, n)
	for i := range n {
		da, db := 1, 1
		if j := i - n + len(a); j >= 0 {
			da = a[j]
		}
		if j := i - n + len(b); j >= 0 {
			db = b[j]
		}
		switch {
		case da == db, db == 1:
			out[i] = da
		case da == 1:
			out[i] = db
		default:
			return nil, false
		}
	}
	return out, true
}

// Ints returns dimensions of a file as int.
func Ints(v []int64) []int {
	out := make([]int, len(v))
	for i, x := range v {
		out[i] = int(x)
	}
	return out
}

// Int64s returns dimensions as a file has them.
func Int64s(v []int) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		out[i] = int64(x)
	}
	return out
}

package infer

import (
	"encoding/binary"
	"math"

	"ddiff/internal/restore/onnx/onnxpb"
)

// Literal holds the elements of a value that does not depend on data. Booleans are 0 and 1; integers above 2⁵³ are rounded.
type Literal struct {
	dtype    DType
	dims     []int
	Elements []float64
}

// largestLiteral is the number of elements up to which values are evaluated.
const largestLiteral = 1 << 16

// Integers returns the elements as integers, cut towards zero and limited to ±2⁶².
func (l Literal) Integers() []int {
	const limit = 1 << 62
	out := make([]int, len(l.Elements))
	for i, x := range l.Elements {
		out[i] = int(max(-limit, min(x, limit)))
	}
	return out
}

// DecodeTensor reads a small tensor of a file.
func DecodeTensor(t *onnxpb.TensorProto) (Literal, bool) {
	l := Literal{dtype: DType(t.DataType), dims: Ints(t.Dims)}
	n := Size(l.dims)
	if n > largestLiteral {
		return Literal{}, false
	}
	switch bits := binary.LittleEndian; l.dtype {
	case Float:
		decode := func(b []byte) float32 { return math.Float32frombits(bits.Uint32(b)) }
		l.Elements = append(numbers(t.FloatData), stored(t.RawData, 4, decode)...)
	case Double:
		decode := func(b []byte) float64 { return math.Float64frombits(bits.Uint64(b)) }
		l.Elements = append(numbers(t.DoubleData), stored(t.RawData, 8, decode)...)
	case Int64:
		//nolint:gosec // two's complement
		l.Elements = append(numbers(t.Int64Data), stored(t.RawData, 8, func(b []byte) int64 { return int64(bits.Uint64(b)) })...)
	case Int32:
		//nolint:gosec // two's complement
		l.Elements = append(numbers(t.Int32Data), stored(t.RawData, 4, func(b []byte) int32 { return int32(bits.Uint32(b)) })...)
	case Bool:
		l.Elements = append(numbers(t.Int32Data), numbers(t.RawData)...)
	default:
		return Literal{}, false
	}
	return l, len(l.Elements) == n
}

// numbers converts elements.
func numbers[T float32 | float64 | int64 | int32 | int | byte](x []T) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// stored reads elements of a size in bytes.
func stored[T float32 | float64 | int64 | int32](raw []byte, size int, read func(b []byte) T) []float64 {
	var out []float64
	for ; len(raw) >= size; raw = raw[size:] {
		out = append(out, float64(read(raw)))
	}
	return out
}

// FloatBytes returns the elements of a float tensor as a file stores them.
func FloatBytes(data []float32) []byte {
	raw := make([]byte, 4*len(data))
	for i, x := range data {
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(x))
	}
	return raw
}

// IntBytes returns the elements of an int64 tensor as a file stores them.
func IntBytes(data []int) []byte {
	raw := make([]byte, 8*len(data))
	for i, x := range data {
		binary.LittleEndian.PutUint64(raw[8*i:], uint64(x))
	}
	return raw
}

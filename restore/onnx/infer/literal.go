package infer

import (
	"encoding/binary"
	"math"

	"ddiff/restore/onnx/onnxpb"
)

// Literal holds the elements of a value that does not depend on data.
type Literal struct {
	dtype    DType
	dims     []int
	Integers []int     // of integer and Boolean types
	Numbers  []float64 // of float types; not nil even if empty
}

// largestLiteral is the number of elements up to which values are evaluated.
const largestLiteral = 1 << 16

// DecodeTensor reads a small tensor of a file.
func DecodeTensor(t *onnxpb.TensorProto) (Literal, bool) {
	l := Literal{dtype: DType(t.DataType), dims: Ints(t.Dims)}
	n := Size(l.dims)
	if n > largestLiteral {
		return Literal{}, false
	}
	switch l.dtype {
	case Float:
		l.Numbers = make([]float64, 0, n)
		for _, x := range t.FloatData {
			l.Numbers = append(l.Numbers, float64(x))
		}
		for raw := t.RawData; len(raw) >= 4; raw = raw[4:] {
			l.Numbers = append(l.Numbers, float64(math.Float32frombits(binary.LittleEndian.Uint32(raw))))
		}
	case Double:
		l.Numbers = append(make([]float64, 0, n), t.DoubleData...)
		for raw := t.RawData; len(raw) >= 8; raw = raw[8:] {
			l.Numbers = append(l.Numbers, math.Float64frombits(binary.LittleEndian.Uint64(raw)))
		}
	case Int64:
		l.Integers = Ints(t.Int64Data)
		for raw := t.RawData; len(raw) >= 8; raw = raw[8:] {
			l.Integers = append(l.Integers, int(int64(binary.LittleEndian.Uint64(raw)))) //nolint:gosec // two's complement
		}
	case Int32:
		for _, x := range t.Int32Data {
			l.Integers = append(l.Integers, int(x))
		}
		for raw := t.RawData; len(raw) >= 4; raw = raw[4:] {
			l.Integers = append(l.Integers, int(int32(binary.LittleEndian.Uint32(raw)))) //nolint:gosec // two's complement
		}
	case Bool:
		for _, x := range t.Int32Data {
			l.Integers = append(l.Integers, int(x))
		}
		for _, x := range t.RawData {
			l.Integers = append(l.Integers, int(x))
		}
	default:
		return Literal{}, false
	}
	return l, len(l.Integers)+len(l.Numbers) == n
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

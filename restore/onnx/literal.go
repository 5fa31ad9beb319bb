package onnx

import (
	"encoding/binary"
	"math"

	"ddiff/restore/onnx/onnxpb"
)

// literal holds the elements of a value that does not depend on data.
type literal struct {
	dtype    DType
	dims     []int
	integers []int     // of integer and Boolean types
	numbers  []float64 // of float types; not nil even if empty
}

// largestLiteral is the number of elements up to which values are evaluated.
const largestLiteral = 1 << 16

// decode reads a small tensor of a file.
func decode(t *onnxpb.TensorProto) (literal, bool) {
	l := literal{dtype: DType(t.DataType), dims: ints(t.Dims)}
	n := size(l.dims)
	if n > largestLiteral {
		return literal{}, false
	}
	switch l.dtype {
	case Float:
		l.numbers = make([]float64, 0, n)
		for _, x := range t.FloatData {
			l.numbers = append(l.numbers, float64(x))
		}
		for raw := t.RawData; len(raw) >= 4; raw = raw[4:] {
			l.numbers = append(l.numbers, float64(math.Float32frombits(binary.LittleEndian.Uint32(raw))))
		}
	case Double:
		l.numbers = append(make([]float64, 0, n), t.DoubleData...)
		for raw := t.RawData; len(raw) >= 8; raw = raw[8:] {
			l.numbers = append(l.numbers, math.Float64frombits(binary.LittleEndian.Uint64(raw)))
		}
	case Int64:
		l.integers = ints(t.Int64Data)
		for raw := t.RawData; len(raw) >= 8; raw = raw[8:] {
			l.integers = append(l.integers, int(int64(binary.LittleEndian.Uint64(raw)))) //nolint:gosec // two's complement
		}
	case Int32:
		for _, x := range t.Int32Data {
			l.integers = append(l.integers, int(x))
		}
		for raw := t.RawData; len(raw) >= 4; raw = raw[4:] {
			l.integers = append(l.integers, int(int32(binary.LittleEndian.Uint32(raw)))) //nolint:gosec // two's complement
		}
	case Bool:
		for _, x := range t.Int32Data {
			l.integers = append(l.integers, int(x))
		}
		for _, x := range t.RawData {
			l.integers = append(l.integers, int(x))
		}
	default:
		return literal{}, false
	}
	return l, len(l.integers)+len(l.numbers) == n
}

// floatBytes returns the elements of a float tensor as a file stores them.
func floatBytes(data []float32) []byte {
	raw := make([]byte, 4*len(data))
	for i, x := range data {
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(x))
	}
	return raw
}

// intBytes returns the elements of an int64 tensor as a file stores them.
func intBytes(data []int) []byte {
	raw := make([]byte, 8*len(data))
	for i, x := range data {
		binary.LittleEndian.PutUint64(raw[8*i:], uint64(x))
	}
	return raw
}

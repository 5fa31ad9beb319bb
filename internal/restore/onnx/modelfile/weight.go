package modelfile

import (
	"encoding/binary"
	"math"

	"ddiff/internal/restore/onnx/infer"
)

// floats returns the elements of a float32 constant, else nil.
func (f *fuser) floats(name string) []float32 {
	t, ok := f.consts[name]
	if !ok || infer.DType(t.DataType) != infer.Float {
		return nil
	}
	raw := stored(t)
	if len(raw) == 0 {
		return t.FloatData
	}
	out := make([]float32, len(raw)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out
}

// integers returns the elements of a constant of integers, else nil.
func (f *fuser) integers(name string) []int {
	t, ok := f.consts[name]
	if !ok {
		return nil
	}
	l, _ := infer.DecodeTensor(t)
	return l.Integers()
}

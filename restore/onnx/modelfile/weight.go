package modelfile

import (
	"encoding/binary"
	"math"

	"ddiff/restore/onnx/infer"
	"ddiff/restore/onnx/onnxpb"
)

// elements returns the elements of a tensor in float32 or float16, else nil.
func elements(t *onnxpb.TensorProto) []float32 {
	switch infer.DType(t.DataType) {
	case infer.Float:
		if len(t.RawData) == 0 {
			return t.FloatData
		}
		out := make([]float32, len(t.RawData)/4)
		for i := range out {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.RawData[4*i:]))
		}
		return out
	case infer.Float16:
		out := make([]float32, 0, len(t.Int32Data)+len(t.RawData)/2)
		for _, bits := range t.Int32Data {
			out = append(out, fromHalf(uint16(bits))) //nolint:gosec // the file has 16 bits in each element
		}
		for raw := t.RawData; len(raw) >= 2; raw = raw[2:] {
			out = append(out, fromHalf(binary.LittleEndian.Uint16(raw)))
		}
		return out
	}
	return nil
}

// fromHalf converts a float16.
func fromHalf(bits uint16) float32 {
	const more = 112 // between the exponents' offsets, 127 and 15
	sign, exponent, fraction := uint32(bits>>15)<<31, uint32(bits>>10&31), uint32(bits&1023)
	switch exponent {
	case 0:
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)/(1<<24)))
	case 31:
		exponent += more // infinite or NaN
	}
	return math.Float32frombits(sign | (exponent+more)<<23 | fraction<<13)
}

// weight returns a float tensor that the model has as a constant, also in float16 and widened.
func (b *blocker) weight(name string) (data []float32, dims []int) {
	t, ok := b.consts[name]
	if n := b.producers[name]; !ok && n != nil && n.OpType == "Cast" && len(n.Input) == 1 && infer.Standard(n) && infer.DecodeAttributes(n.Attribute)["to"] == int(infer.Float) {
		t, ok = b.consts[n.Input[0]]
	}
	if !ok {
		return nil, nil
	}
	data, dims = elements(t), infer.Ints(t.Dims)
	if len(data) == 0 || len(data) != infer.Size(dims) {
		return nil, nil
	}
	return data, dims
}

// floats returns the elements of a float32 constant, else nil.
func (f *fuser) floats(name string) []float32 {
	if t, ok := f.consts[name]; ok && infer.DType(t.DataType) == infer.Float {
		return elements(t)
	}
	return nil
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

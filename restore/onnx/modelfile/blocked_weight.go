package modelfile

import (
	"encoding/binary"
	"math"
	"slices"

	"ddiff/restore/onnx/infer"
)

// weight returns a float tensor that the model has as a constant, also in float16 and widened.
func (b *blocker) weight(name string) (data []float32, dims []int) {
	t, ok := b.consts[name]
	if n := b.producers[name]; !ok && n != nil && n.OpType == "Cast" && len(n.Input) == 1 && infer.Standard(n) && infer.DecodeAttributes(n.Attribute)["to"] == int(infer.Float) {
		t, ok = b.consts[n.Input[0]]
	}
	if !ok {
		return nil, nil
	}
	dims = infer.Ints(t.Dims)
	switch infer.DType(t.DataType) {
	case infer.Float:
		data = slices.Grow(t.FloatData, len(t.RawData)/4)
		for raw := t.RawData; len(raw) >= 4; raw = raw[4:] {
			data = append(data, math.Float32frombits(binary.LittleEndian.Uint32(raw)))
		}
	case infer.Float16:
		data = make([]float32, 0, len(t.Int32Data)+len(t.RawData)/2)
		for _, bits := range t.Int32Data {
			data = append(data, fromHalf(uint16(bits))) //nolint:gosec // the file has 16 bits in each element
		}
		for raw := t.RawData; len(raw) >= 2; raw = raw[2:] {
			data = append(data, fromHalf(binary.LittleEndian.Uint16(raw)))
		}
	}
	if len(data) == 0 || len(data) != infer.Size(dims) {
		return nil, nil
	}
	return data, dims
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

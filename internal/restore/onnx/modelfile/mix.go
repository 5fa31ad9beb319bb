package modelfile

import (
	"fmt"

	"ddiff/internal/restore/onnx/onnxpb"
)

// mostMixed is the largest number of input and of output channels of a mix: those of a picture.
const mostMixed = 4

// mix rewrites a convolution that mixes the channels of a picture, with kernels of 1×1, as a sum of products. OpenVINO in bfloat16 rounds
// all values before a convolution, and keeps float32 behind the last one. A network may end with a linear estimate of the image whose last operation mixes colours: its
// weights would have eight bits, which changes the contrast of every prediction by up to 0.2 %.
func (f *fuser) mix(conv *onnxpb.NodeProto) {
	if len(conv.Input) < 2 {
		return
	}
	dims := f.dims(conv.Input[1])
	if len(dims) != 4 || dims[0] > mostMixed || dims[1] > mostMixed || !pointwise(conv, dims) {
		return
	}
	a := affine{f: f, prefix: fmt.Sprintf("mix_%d_", len(f.replaced))}
	column := a.ints("column", 1, -1, 1, 1)
	sum := ""
	for i := range int(dims[1]) {
		from, to, axis := a.ints(fmt.Sprint("from", i), i), a.ints(fmt.Sprint("to", i), i+1), a.ints(fmt.Sprint("axis", i), 1)
		weights := a.op("Reshape", fmt.Sprint("weights", i), a.op("Slice", fmt.Sprint("part", i), conv.Input[1], from, to, axis), column)
		product := a.op("Mul", fmt.Sprint("product", i), a.op("Slice", fmt.Sprint("channel", i), conv.Input[0], from, to, axis), weights)
		if sum != "" {
			product = a.op("Add", fmt.Sprint("sum", i), sum, product)
		}
		sum = product
	}
	if len(conv.Input) > 2 && conv.Input[2] != "" {
		a.op("Add", "biased", sum, a.op("Reshape", "bias", conv.Input[2], column))
	}
	a.nodes[len(a.nodes)-1].Output[0] = conv.Output[0]
	f.replaced[conv] = a.nodes
}

// dims returns the shape of a constant, which may be stored in another type, or nil.
func (f *fuser) dims(name string) []int64 {
	for range 2 { // more would be a fault, perhaps a cycle
		if n := f.producers[name]; n != nil && n.OpType == "Cast" {
			name = n.Input[0]
		}
	}
	if t := f.consts[name]; t != nil {
		return t.Dims
	}
	return nil
}

// pointwise reports whether a convolution with weights of this shape reads one pixel for each of its output.
func pointwise(conv *onnxpb.NodeProto, weights []int64) bool {
	for _, size := range weights[2:] {
		if size != 1 {
			return false
		}
	}
	for _, a := range conv.Attribute {
		for _, n := range a.Ints {
			if a.Name == "strides" && n != 1 || a.Name == "pads" && n != 0 {
				return false
			}
		}
		if a.Name == "group" && a.I != 1 {
			return false
		}
	}
	return true
}

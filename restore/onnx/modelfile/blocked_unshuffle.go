package modelfile

import (
	"slices"

	"ddiff/restore/onnx/infer"
)

// unshuffled returns the image of which a value is the pixel unshuffle by r: the pixels of each r×r become channels, of which r·r follow each
// other. r is 0 for another value. PyTorch exports it as a Transpose between changes of shape.
func (b *blocker) unshuffled(name string) (image string, r int) {
	y := b.dims(name)
	name = b.reshapedFrom(name)
	n := b.producers[name]
	if len(y) != 4 || n == nil || n.OpType != "Transpose" || len(n.Input) != 1 {
		return "", 0
	}
	parts, moved := b.dims(n.Input[0]), b.dims(name)
	perm, _ := infer.DecodeAttributes(n.Attribute)["perm"].([]int)
	if len(parts) != 6 || len(moved) != 6 || !slices.Equal(perm, []int{0, 1, 3, 5, 2, 4}) {
		return "", 0
	}
	channels, size := parts[1], parts[3]
	image = b.reshapedFrom(n.Input[0])
	if !slices.Equal(y, []int{parts[0], channels * size * size, parts[2], parts[4]}) || parts[5] != size ||
		!slices.Equal(b.dims(image), []int{parts[0], channels, parts[2] * size, parts[4] * size}) {
		return "", 0
	}
	return image, size
}

// reshapedFrom returns the value from which a value differs in its dimensions only. Its elements have the same order.
func (b *blocker) reshapedFrom(name string) string {
	for {
		n := b.producers[name]
		if n == nil || len(n.Input) == 0 || !infer.Standard(n) || !slices.Contains([]string{"Reshape", "Squeeze", "Unsqueeze", "Flatten"}, n.OpType) {
			return name
		}
		name = n.Input[0]
	}
}

// unshuffledKernel returns the weights [out, in/r², 3·r, 3·r] with which a convolution of an image, with the stride r and a margin of r
// pixels, is that of its pixel unshuffle with weights [out, in, 3, 3] and a margin of one.
func unshuffledKernel(w []float32, dims []int, r int) ([]float32, []int) {
	out, channels, wide := dims[0], dims[1]/(r*r), dims[3]*r
	k := make([]float32, len(w))
	for o := range out {
		for c := range channels {
			for i := range wide * wide {
				y, x := i/wide, i%wide
				in := (c*r+y%r)*r + x%r
				k[(o*channels+c)*wide*wide+i] = w[((o*dims[1]+in)*dims[2]+y/r)*dims[3]+x/r]
			}
		}
	}
	return k, []int{out, channels, wide, wide}
}

package modelfile

import (
	"slices"

	"ddiff/restore/onnx/infer"
	"ddiff/restore/onnx/onnxpb"
)

// unary adds an operation on each element.
func (b *blocker) unary(n *onnxpb.NodeProto) bool {
	v := b.imageOf(n.Input[0])
	if v == nil || len(n.Input) != 1 {
		return false
	}
	b.nodes = append(b.nodes, copied(n, b.blockedName(n.Output[0]), v.name))
	b.add(n.Output[0], v.dims)
	return true
}

// binary adds an operation on two images of the same dimensions, or on an image and one number.
func (b *blocker) binary(n *onnxpb.NodeProto) bool {
	var dims []int
	names := slices.Clone(n.Input)
	for _, name := range n.Input {
		if b.imageLike(name) {
			if dims != nil && !slices.Equal(dims, b.views[name].dims) {
				return false
			}
			dims = b.views[name].dims
		} else if d := b.dims(name); d == nil || infer.Size(d) != 1 || len(d) > 4 {
			return false
		}
	}
	if dims == nil {
		return false
	}
	for i, name := range n.Input {
		if b.imageLike(name) {
			names[i] = b.imageOf(name).name
		} else {
			b.restore(name)
		}
	}
	b.nodes = append(b.nodes, copied(n, b.blockedName(n.Output[0]), names...))
	b.add(n.Output[0], dims)
	return true
}

// sum lets the convolution that computed one of two images add the other.
func (b *blocker) sum(n *onnxpb.NodeProto) bool {
	for _, name := range n.Input {
		v, o := b.views[name], b.imageOf(other(n, name))
		if v == nil || o == nil || v.conv == nil || n.Input[0] == n.Input[1] || len(b.consumers[name]) != 1 || !slices.Equal(v.dims, o.dims) {
			continue
		}
		// The node moves behind that of the other image, and nothing else reads its result.
		b.nodes = slices.DeleteFunc(b.nodes, func(c *onnxpb.NodeProto) bool { return c == v.conv })
		v.conv.Input = append(v.conv.Input, o.name)
		v.conv.Output[0], v.conv.Name = b.blockedName(n.Output[0]), b.blockedName(n.Output[0])
		b.nodes = append(b.nodes, v.conv)
		b.add(n.Output[0], v.dims)
		return true
	}
	return false
}

// perChannel reports whether a value has one number per channel of images [N, C, H, W], or of each of them.
func (b *blocker) perChannel(name string, image []int) bool {
	d := b.dims(name)
	if len(d) == 3 {
		d = append([]int{1}, d...)
	}
	return len(d) == 4 && (d[0] == 1 || d[0] == image[0]) && d[1] == image[1] && d[2] == 1 && d[3] == 1
}

// byChannel returns the image of a binary node's first or second input, and the other input, if that has one number per channel.
func (b *blocker) byChannel(n *onnxpb.NodeProto) (image, numbers string) {
	for i, name := range n.Input {
		if o := n.Input[1-i]; b.imageLike(name) && b.perChannel(o, b.views[name].dims) {
			return name, o
		}
	}
	return "", ""
}

// imageLike reports whether imageOf is an image. It computes nothing.
func (b *blocker) imageLike(name string) bool {
	v := b.views[name]
	return v != nil && (v.kind == viewImage || v.kind == viewScaled || v.kind == viewUpsized)
}

// scale delays a product with one number per channel, which a sum may follow.
func (b *blocker) scale(n *onnxpb.NodeProto) bool {
	image, slope := b.byChannel(n)
	if image == "" {
		return false
	}
	b.imageOf(image)
	b.restore(slope)
	b.views[n.Output[0]] = &view{kind: viewScaled, dims: b.views[image].dims, of: image, slope: slope}
	return true
}

// shift adds a sum with one number per channel.
func (b *blocker) shift(n *onnxpb.NodeProto) bool {
	image, offset := b.byChannel(n)
	if image == "" {
		return false
	}
	b.restore(offset)
	if v := b.views[image]; v.kind == viewScaled {
		b.affine(n.Output[0], v.of, v.slope, offset)
	} else {
		b.imageOf(image)
		b.affine(n.Output[0], image, "", offset)
	}
	return true
}

// affine adds slope·of + offset as a convolution of one pixel by channel. Slope and offset have one number per channel; one may be
// empty. The channels of all images of a batch are channels of one.
func (b *blocker) affine(name, of, slope, offset string) {
	v := b.views[of]
	n, c := v.dims[0], v.dims[1]
	numbers := func(part, in string) string {
		if in == "" {
			return ""
		}
		if d := b.dims(in); infer.Size(d) < n*c {
			in = b.reshape(b.part(name, part+" of one"), in, 1, c)
			in = b.emit("", "Expand", b.part(name, part+" of each"), []string{in, b.integers(n, c)}, nil).Output[0]
		}
		dims := []int{n * c, 1, 1, 1}
		if part == "offset" {
			dims = dims[:1]
		}
		return b.reshape(b.part(name, part), in, dims...)
	}
	weights := numbers("slope", slope)
	if weights == "" {
		weights = b.constant(b.part(name, "ones"), infer.Float, func() []byte { return infer.FloatBytes(slices.Repeat([]float32{1}, n*c)) }, n*c, 1, 1, 1)
	}
	inputs := []string{b.joined(of), weights}
	if o := numbers("offset", offset); o != "" {
		inputs = append(inputs, o)
	}
	b.emit(BlockedDomain, "Conv", b.part(name, "affine"), inputs, map[string]any{"group": n * c})
	b.reshape(b.blockedName(name), b.part(name, "affine"), v.dims...)
	b.add(name, v.dims)
}

// joined returns an image of a batch with the channels of all in one image, [1, N·C, H, W].
func (b *blocker) joined(of string) string {
	v := b.views[of]
	if v.dims[0] == 1 {
		return v.name
	}
	name := b.part(v.name, "joined")
	if !b.inits[name] {
		b.inits[name] = true
		b.reshape(name, v.name, 1, v.dims[0]*v.dims[1], v.dims[2], v.dims[3])
	}
	return name
}

package randomnet

import (
	"math"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxpb"
)

// feature is a feature map [N, channels, side, side], or a vector per image of side 0.
type feature struct {
	name     string
	channels int
	side     int
}

// with returns f with another name.
func (f feature) with(name string) feature { f.name = name; return f }

// resampling is the change of the map's side in a residual block.
type resampling int

const (
	same resampling = iota
	down            // half, by averages of 2×2
	up              // double, by repetition
)

// Gains of a layer's weights. Branches end with a small gain, so that the sum of many branches stays near 1.
const (
	fullGain   = 1.0
	branchGain = 0.3
)

// embed returns the time embedding of all blocks, silu(W·silu(W·[cos t·f, sin t·f])).
func (b *builder) embed(t string) feature {
	half := b.cfg.Base / 2
	frequencies := make([]float32, half)
	for i := range frequencies {
		frequencies[i] = float32(math.Exp(-math.Log(10000) * float64(i) / float64(half)))
	}
	time := b.node("Reshape", "", b.node("Cast", "", t, number("to", int64(onnx.Float))), b.shape(-1, 1))
	angle := b.node("Mul", "", time, b.floats("frequencies", frequencies, 1, half))
	e := feature{name: b.node("Concat", "", b.node("Cos", "", angle), b.node("Sin", "", angle), number("axis", 1)), channels: b.cfg.Base}
	e = b.linear("time_embed.0", e, 4*b.cfg.Base)
	return b.silu(b.linear("time_embed.2", b.silu(e), 4*b.cfg.Base))
}

// block adds a residual block: two normalised convolutions, the second scaled and shifted by the time embedding.
func (b *builder) block(name string, x, emb feature, channels int, r resampling) feature {
	h := b.resample(b.silu(b.norm(name+".in_layers.0", x)), r)
	h = b.conv(name+".in_layers.2", h, channels, 3, fullGain)
	e := b.linear(name+".emb_layers.1", emb, 2*channels)
	parts := b.split(e.name, 1, channels, channels)
	scale := b.node("Add", "", b.node("Reshape", "", parts[0], b.shape(-1, channels, 1, 1)), b.floats("one", []float32{1}, 1))
	shift := b.node("Reshape", "", parts[1], b.shape(-1, channels, 1, 1))
	h = b.norm(name+".out_layers.0", h)
	h = h.with(b.node("Add", "", b.node("Mul", "", h.name, scale), shift))
	h = b.conv(name+".out_layers.3", b.silu(h), channels, 3, branchGain)
	x = b.resample(x, r)
	if x.channels != channels {
		x = b.conv(name+".skip_connection", x, channels, 1, fullGain)
	}
	return h.with(b.node("Add", "", x.name, h.name))
}

// attention adds self-attention over the pixels of the map.
func (b *builder) attention(name string, x feature) feature {
	heads, pixels := x.channels/HeadChannels, x.side*x.side
	qkv := b.conv(name+".qkv", b.norm(name+".norm", x), 3*x.channels, 1, fullGain)
	parts := b.split(b.node("Reshape", "", qkv.name, b.shape(0, heads, 3*HeadChannels, pixels)), 2, HeadChannels, HeadChannels, HeadChannels)
	scale := b.floats("head_scale", []float32{float32(1 / math.Sqrt(math.Sqrt(HeadChannels)))}, 1)
	q := b.node("Transpose", "", b.node("Mul", "", parts[0], scale), numbers("perm", 0, 1, 3, 2))
	k := b.node("Mul", "", parts[1], scale)
	w := b.node("Softmax", "", b.node("MatMul", "", q, k), number("axis", -1))
	a := b.node("MatMul", "", parts[2], b.node("Transpose", "", w, numbers("perm", 0, 1, 3, 2)))
	h := x.with(b.node("Reshape", "", a, b.shape(0, x.channels, x.side, x.side)))
	h = b.conv(name+".proj_out", h, x.channels, 1, branchGain)
	return h.with(b.node("Add", "", x.name, h.name))
}

// norm adds a group normalisation in the form in which exporters write it.
func (b *builder) norm(name string, x feature) feature {
	ones, zeros := make([]float32, groups), make([]float32, groups)
	for i := range ones {
		ones[i] = 1
	}
	h := b.node("Reshape", "", x.name, b.shape(0, groups, -1))
	h = b.node("InstanceNormalization", "", h, b.floats("norm_ones", ones, groups), b.floats("norm_zeros", zeros, groups), decimal("epsilon", 1e-5))
	h = b.node("Reshape", "", h, b.shape(0, x.channels, x.side, x.side))
	gamma := b.draw(name+".weight", 1, 0.1, []int{x.channels}, x.channels, 1, 1)
	beta := b.draw(name+".bias", 0, 0.1, []int{x.channels}, x.channels, 1, 1)
	return x.with(b.node("Add", "", b.node("Mul", "", h, gamma), beta))
}

func (b *builder) conv(name string, x feature, channels, kernel int, gain float64) feature {
	fan := x.channels * kernel * kernel
	stored := []int{channels, x.channels, kernel, kernel}
	if kernel == 1 && isAttention(name) {
		stored = stored[:3] // published as a convolution over a sequence
	}
	w := b.draw(name+".weight", 0, gain/math.Sqrt(float64(fan)), stored, channels, x.channels, kernel, kernel)
	bias := b.draw(name+".bias", 0, 0.02, []int{channels}, channels)
	y := b.node("Conv", "", x.name, w, bias,
		numbers("kernel_shape", kernel, kernel), numbers("pads", kernel/2, kernel/2, kernel/2, kernel/2), numbers("strides", 1, 1))
	return feature{name: y, channels: channels, side: x.side}
}

func (b *builder) linear(name string, x feature, channels int) feature {
	w := b.draw(name+".weight", 0, 1/math.Sqrt(float64(x.channels)), []int{channels, x.channels}, channels, x.channels)
	bias := b.draw(name+".bias", 0, 0.02, []int{channels}, channels)
	return feature{name: b.node("Gemm", "", x.name, w, bias, number("transB", 1)), channels: channels}
}

func (b *builder) silu(x feature) feature {
	return x.with(b.node("Mul", "", x.name, b.node("Sigmoid", "", x.name)))
}

func (b *builder) concat(x, y feature) feature {
	return feature{name: b.node("Concat", "", x.name, y.name, number("axis", 1)), channels: x.channels + y.channels, side: x.side}
}

func (b *builder) resample(x feature, r resampling) feature {
	switch r {
	case down:
		y := b.node("AveragePool", "", x.name, numbers("kernel_shape", 2, 2), numbers("strides", 2, 2))
		return feature{y, x.channels, x.side / 2}
	case up:
		y := b.node("Resize", "", x.name, optional, b.floats("twice", []float32{1, 1, 2, 2}, 4),
			text("mode", "nearest"), text("coordinate_transformation_mode", "asymmetric"), text("nearest_mode", "floor"))
		return feature{y, x.channels, x.side * 2}
	}
	return x
}

func (b *builder) split(x string, axis int, sizes ...int) []string {
	names := make([]string, len(sizes))
	for i := range sizes {
		names[i] = b.fresh()
	}
	b.graph.Node = append(b.graph.Node, &onnxpb.NodeProto{
		Name: names[0], OpType: "Split", Input: []string{x, b.shape(sizes...)}, Output: names,
		Attribute: []*onnxpb.AttributeProto{number("axis", int64(axis))},
	})
	return names
}

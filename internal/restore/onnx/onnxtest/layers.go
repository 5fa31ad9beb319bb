package onnxtest

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/infer"
	"ddiff/restore/onnx"
)

// builder adds the layers of a network to a graph. Feature maps are [N, channels, side, side] with a variable batch size
// N, which is −1 in Dims.
type builder struct {
	*onnx.Graph
}

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
func (b *builder) embed(t onnx.Value) onnx.Value {
	half := base / 2
	frequencies := make([]float32, half)
	for i := range frequencies {
		frequencies[i] = float32(math.Exp(-math.Log(10000) * float64(i) / float64(half)))
	}
	angle := b.Mul(b.Reshape(b.Cast(t, onnx.Float), -1, 1), b.Const(frequencies, 1, half))
	cos, sin := b.Apply("Cos", onnx.Float, angle.Dims, nil, angle), b.Apply("Sin", onnx.Float, angle.Dims, nil, angle)
	e := b.linear("time_embed.0", b.Concat(1, cos, sin), 4*base)
	return b.silu(b.linear("time_embed.2", b.silu(e), 4*base))
}

// block adds a residual block: two normalised convolutions, the second scaled and shifted by the time embedding.
func (b *builder) block(name string, x, emb onnx.Value, channels int, r resampling) onnx.Value {
	h := b.resample(b.silu(b.norm(name+".in_layers.0", x)), r)
	h = b.conv(name+".in_layers.2", h, channels, 3, fullGain)
	parts := b.Split(b.linear(name+".emb_layers.1", emb, 2*channels), 1, channels, channels)
	scale := b.Add(b.Reshape(parts[0], -1, channels, 1, 1), b.Const([]float32{1}, 1))
	shift := b.Reshape(parts[1], -1, channels, 1, 1)
	h = b.Add(b.Mul(b.norm(name+".out_layers.0", h), scale), shift)
	h = b.conv(name+".out_layers.3", b.silu(h), channels, 3, branchGain)
	x = b.resample(x, r)
	if x.Dims[1] != channels {
		x = b.conv(name+".skip_connection", x, channels, 1, fullGain)
	}
	return b.Add(x, h)
}

// attention adds self-attention over the pixels of the map.
func (b *builder) attention(name string, x onnx.Value) onnx.Value {
	channels, pixels := x.Dims[1], x.Dims[2]*x.Dims[3]
	qkv := b.conv(name+".qkv", b.norm(name+".norm", x), 3*channels, 1, fullGain)
	heads := b.Reshape(qkv, -1, channels/headChannels, 3*headChannels, pixels)
	parts := b.Split(heads, 2, headChannels, headChannels, headChannels)
	scale := b.Const([]float32{float32(1 / math.Sqrt(math.Sqrt(headChannels)))}, 1)
	w := b.MatMul(b.Transpose(b.Mul(parts[0], scale), 0, 1, 3, 2), b.Mul(parts[1], scale))
	w = b.Apply("Softmax", onnx.Float, w.Dims, map[string]any{"axis": -1}, w)
	h := b.Reshape(b.MatMul(parts[2], b.Transpose(w, 0, 1, 3, 2)), x.Dims...)
	return b.Add(x, b.conv(name+".proj_out", h, channels, 1, branchGain))
}

// norm adds a group normalisation in the form in which exporters write it.
func (b *builder) norm(name string, x onnx.Value) onnx.Value {
	channels := x.Dims[1]
	h := b.Reshape(x, -1, groups, channels/groups*x.Dims[2]*x.Dims[3])
	ones, zeros := b.Const(slices.Repeat([]float32{1}, groups), groups), b.Const(make([]float32, groups), groups)
	h = b.Apply("InstanceNormalization", onnx.Float, h.Dims, map[string]any{"epsilon": float32(1e-5)}, h, ones, zeros)
	gamma, beta := b.draw(name+".weight", 1, 0.1, channels, 1, 1), b.draw(name+".bias", 0, 0.1, channels, 1, 1)
	return b.Add(b.Mul(b.Reshape(h, x.Dims...), gamma), beta)
}

func (b *builder) conv(name string, x onnx.Value, channels, kernel int, gain float64) onnx.Value {
	fan := x.Dims[1] * kernel * kernel
	w := b.draw(name+".weight", 0, gain/math.Sqrt(float64(fan)), channels, x.Dims[1], kernel, kernel)
	bias := b.draw(name+".bias", 0, 0.02, channels)
	return b.Apply("Conv", onnx.Float, []int{-1, channels, x.Dims[2], x.Dims[3]}, map[string]any{
		"kernel_shape": []int{kernel, kernel}, "pads": slices.Repeat([]int{kernel / 2}, 4), "strides": []int{1, 1},
	}, x, w, bias)
}

func (b *builder) linear(name string, x onnx.Value, channels int) onnx.Value {
	w := b.draw(name+".weight", 0, 1/math.Sqrt(float64(x.Dims[1])), channels, x.Dims[1])
	bias := b.draw(name+".bias", 0, 0.02, channels)
	return b.Apply("Gemm", onnx.Float, []int{-1, channels}, map[string]any{"transB": 1}, x, w, bias)
}

func (b *builder) silu(x onnx.Value) onnx.Value {
	return b.Mul(x, b.Apply("Sigmoid", onnx.Float, x.Dims, nil, x))
}

func (b *builder) resample(x onnx.Value, r resampling) onnx.Value {
	channels, side := x.Dims[1], x.Dims[2]
	switch r {
	case down:
		return b.Apply("AveragePool", onnx.Float, []int{-1, channels, side / 2, side / 2},
			map[string]any{"kernel_shape": []int{2, 2}, "strides": []int{2, 2}}, x)
	case up:
		return b.Apply("Resize", onnx.Float, []int{-1, channels, 2 * side, 2 * side},
			map[string]any{"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
			x, onnx.Value{}, b.Const([]float32{1, 1, 2, 2}, 4))
	}
	return x
}

// draw returns a random weight with the given mean, standard deviation and shape. Its values depend on the name only.
func (b *builder) draw(name string, mean float32, deviation float64, dims ...int) onnx.Value {
	key := noise.NewKey(sha256.Sum256(fmt.Appendf(nil, "random network 0 %s", name)))
	data := make([]float32, infer.Size(dims))
	noise.Normal(data, key, noise.Start, 0, deviation)
	for i := range data {
		data[i] += mean
	}
	return b.Const(data, dims...)
}

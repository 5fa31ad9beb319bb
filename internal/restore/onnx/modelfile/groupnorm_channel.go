package modelfile

import (
	"fmt"
	"slices"

	"ddiff/internal/restore/onnx/onnxpb"
)

// tanh u = u·p(u²)/q(u²) for |u| ≤ tanhLimit, with an absolute error below 1·10⁻⁶, from a least-squares fit whose weights follow the
// error. At the limit 1 − tanh u is 1.7·10⁻⁶.
var (
	tanhP = []float32{0.999995708, 0.123021536, 0.00227696286, 3.92988886e-06}
	tanhQ = []float32{1, 0.456340015, 0.0210720599, 0.000142348013}
)

const tanhLimit = 7

func times(x []float32, factor float32) []float32 {
	out := slices.Clone(x)
	for i := range out {
		out[i] *= factor
	}
	return out
}

// activation returns the output of the SiLU that alone reads a value: its product with its sigmoid. Both nodes are dropped. Without one
// it returns "".
func (f *fuser) activation(value string) string {
	r := f.consumers[value]
	if len(r) != 2 || r[0] == nil || r[1] == nil {
		return ""
	}
	sigmoid, product := r[0], r[1]
	if sigmoid.OpType != "Sigmoid" {
		sigmoid, product = product, sigmoid
	}
	if sigmoid.OpType != "Sigmoid" || f.next(sigmoid.Output[0], "Mul") != product || other(product, value) != sigmoid.Output[0] {
		return ""
	}
	f.dropped[sigmoid], f.dropped[product] = true, true
	return product.Output[0]
}

// build returns the nodes of a normalisation of x.
func (a *affine) build(x, out string, epsilon float32) []*onnxpb.NodeProto {
	c, axes := len(a.gamma), []int{2, 3}[:a.spatial]
	factor, activated := float32(1), a.f.activation(out)
	if activated != "" {
		factor = 0.5 // the argument of tanh
	}
	groups := a.ints("to_groups", 0, a.groups, c/a.groups)
	mean, square := a.moments(x, groups, axes...)
	byGroup := []int{1, a.groups, c / a.groups}
	slope, offset := a.line(mean, square, a.floats("gamma", times(a.gamma, factor), byGroup...), a.floats("beta", times(a.beta, factor), byGroup...), epsilon)
	if a.scale != "" {
		// Here, and not beside the image, OpenVINO computes it once per channel.
		// They may have one number for several channels, or for all images of a batch.
		ones := a.floats("ones", slices.Repeat([]float32{1}, c), append([]int{1, c}, slices.Repeat([]int{1}, a.spatial)...)...)
		scale, shift := a.op("Reshape", "scale", a.op("Mul", "scales", a.scale, ones), groups), a.op("Reshape", "shift", a.op("Mul", "shifts", a.shift, ones), groups)
		if activated != "" {
			shift = a.op("Mul", "half_shift", shift, a.scalar("factor", factor))
		}
		slope, offset = a.op("Mul", "scaled", slope, scale), a.op("Add", "shifted", a.op("Mul", "rescaled", offset, scale), shift)
	}
	channels := a.ints("to_channels", append([]int{0, c}, slices.Repeat([]int{1}, a.spatial)...)...)
	slope, offset = a.op("Reshape", "slopes", slope, channels), a.op("Reshape", "offsets", offset, channels)
	y := a.op("Mul", "y", x, slope)
	if activated == "" {
		a.add("Add", out, []string{y, offset})
	} else {
		a.silu(activated, a.op("Add", "h", y, offset))
	}
	return a.nodes
}

// silu adds h·(1 + tanh h), which is x/(1 + exp(−x)) for x = 2h.
func (a *affine) silu(out, h string) {
	u := a.op("Clip", "u", h, a.scalar("low", -tanhLimit), a.scalar("high", tanhLimit))
	s := a.op("Mul", "s", u, u)
	t := a.op("Div", "tanh", a.op("Mul", "pu", a.polynomial("p", tanhP, s), u), a.polynomial("q", tanhQ, s))
	a.add("Add", out, []string{a.op("Mul", "ht", h, t), h})
}

func (a *affine) scalar(name string, value float32) string { return a.floats(name, []float32{value}) }

// polynomial adds one of s by Horner's rule.
func (a *affine) polynomial(name string, coefficients []float32, s string) string {
	value := ""
	for i, c := range slices.Backward(coefficients) {
		constant := a.scalar(fmt.Sprint(name, i), c)
		if value == "" {
			value = constant
		} else {
			value = a.op("Add", fmt.Sprint(name, "_sum", i), a.op("Mul", fmt.Sprint(name, "_product", i), value, s), constant)
		}
	}
	return value
}

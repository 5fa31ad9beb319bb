package method

import "ddiff/restore/onnx"

// adam are the settings of the optimiser AdamW (Loshchilov and Hutter 2019) with β = (0.9, 0.999).
type adam struct {
	rate  float32 // of learning
	decay float32 // of weights; 0: Adam
}

// start returns the state of the optimiser at v: v, both moments and the powers of the two β.
func (adam) start(b *Builder, v onnx.Value) []onnx.Value {
	zero := b.Mul(v, b.Scalar(0))
	return []onnx.Value{v, zero, zero, b.Scalar(1), b.Scalar(1)}
}

// step returns the state after an iteration with a gradient. active has one number for each image, [N, 1, 1, 1]: an image with
// zero stays as it is.
func (a adam) step(b *Builder, state []onnx.Value, gradient, active onnx.Value) []onnx.Value {
	const first, second, least = 0.9, 0.999, 1e-8
	mean := b.Add(b.Mul(state[1], b.Scalar(first)), b.Mul(gradient, b.Scalar(1-first)))
	square := b.Add(b.Mul(state[2], b.Scalar(second)), b.Mul(b.Mul(gradient, gradient), b.Scalar(1-second)))
	p, q := b.Mul(state[3], b.Scalar(first)), b.Mul(state[4], b.Scalar(second))
	one := b.Scalar(1)
	direction := b.Div(b.Div(mean, b.Minus(one, p)), b.Add(b.Sqrt(b.Div(square, b.Minus(one, q))), b.Scalar(least)))
	change := b.Add(b.Mul(direction, b.Scalar(-a.rate)), b.Mul(state[0], b.Scalar(-a.rate*a.decay)))
	return []onnx.Value{b.Add(state[0], b.Mul(change, active)), mean, square, p, q}
}

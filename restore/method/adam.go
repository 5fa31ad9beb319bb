package method

import "ddiff/restore/onnx"

// The factors of the moments of Adam and AdamW, and the number that keeps their quotient finite.
const (
	adamBeta1   = 0.9
	adamBeta2   = 0.999
	adamEpsilon = 1e-8
)

// average returns share·mean + rest·value, a step of a moment.
func (b *Builder) average(mean, value onnx.Value, share, rest float32) onnx.Value {
	return b.Add(b.Mul(mean, b.Scalar(share)), b.Mul(value, b.Scalar(rest)))
}

// adam are the settings of the optimiser AdamW (Loshchilov and Hutter 2019).
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
	mean := b.average(state[1], gradient, adamBeta1, 1-adamBeta1)
	square := b.average(state[2], b.Mul(gradient, gradient), adamBeta2, 1-adamBeta2)
	p, q := b.Mul(state[3], b.Scalar(adamBeta1)), b.Mul(state[4], b.Scalar(adamBeta2))
	one := b.Scalar(1)
	direction := b.Div(b.Div(mean, b.Minus(one, p)), b.Add(b.Sqrt(b.Div(square, b.Minus(one, q))), b.Scalar(adamEpsilon)))
	change := b.Add(b.Mul(direction, b.Scalar(-a.rate)), b.Mul(state[0], b.Scalar(-a.rate*a.decay)))
	return []onnx.Value{b.Add(state[0], b.Mul(change, active)), mean, square, p, q}
}

package method

import "ddiff/restore/onnx"

// window is the number of iterations after which an optimisation of the latent must have lowered its loss, from the authors'
// code.
const window = 200

// pixelOptimum returns E(x) for the image x with a small ‖y − A(x)‖², from x = D(z).
func pixelOptimum(b *Builder, s Settings, z onnx.Value) ([]onnx.Value, error) {
	x, err := b.Decode(z)
	if err != nil {
		return nil, err
	}
	o := adam{float32(s.Number("pixel_lr")), float32(s.Number("weight_decay"))}
	state := append(o.start(b, x), ones(b))
	final, err := b.Repeat(int(s.Number("pixel_steps")), "", state, func(b *Builder, _, _ onnx.Value, state []onnx.Value) ([]onnx.Value, error) {
		pull, loss, err := meanLoss(b, state[0], b.Pull)
		if err != nil {
			return nil, err
		}
		next := o.step(b, state, b.Neg(pull), asImages(b, state[5]))
		return append(next, b.Mul(state[5], b.above(loss, b.tolerance(s)))), nil
	})
	if err != nil {
		return nil, err
	}
	z, err = b.Encode(final[0])
	return []onnx.Value{z}, err
}

// latentOptimum returns the latent z with a small ‖y − A(D(z))‖². It ends for an image whose loss is not below that of
// 200 iterations before.
func latentOptimum(b *Builder, s Settings, z onnx.Value) ([]onnx.Value, error) {
	o := adam{float32(s.Number("latent_lr")), float32(s.Number("weight_decay"))}
	n := z.Dims[0]
	past := b.Expand(b.Scalar(3e38), n, window)
	state := append(o.start(b, z), ones(b), past)
	final, err := b.Repeat(int(s.Number("latent_steps")), "", state, func(b *Builder, _, _ onnx.Value, state []onnx.Value) ([]onnx.Value, error) {
		pull, loss, err := meanLoss(b, state[0], b.PullLatent)
		if err != nil {
			return nil, err
		}
		next := o.step(b, state, b.Neg(pull), asImages(b, state[5]))
		// 1 − above(loss, old) is 1 if loss ≤ old.
		falls := b.Minus(b.Scalar(1), b.above(loss, b.Reshape(b.Slice(state[6], 1, 0, 1), n)))
		active := b.Mul(state[5], b.Mul(falls, b.above(loss, b.tolerance(s))))
		recorded := b.Concat(1, b.Slice(state[6], 1, 1, window), b.Reshape(loss, n, 1))
		return append(next, active, recorded), nil
	})
	if err != nil {
		return nil, err
	}
	return final[:1], nil
}

// meanLoss returns the step −∇ of the mean square residual and its value per image, [N].
func meanLoss(b *Builder, v onnx.Value, pull func(v, gamma onnx.Value, gradient string) (onnx.Value, onnx.Value, error)) (step, loss onnx.Value, err error) {
	share := b.Scalar(1 / float32(b.run.Operator.MeasurementSize()))
	step, norm, err := pull(v, share, GradientSquared)
	if err != nil {
		return step, loss, err
	}
	return step, b.Mul(b.Mul(norm, norm), share), nil
}

// tolerance is the loss at which an optimisation ends.
func (b *Builder) tolerance(s Settings) onnx.Value {
	return b.Scalar(float32(s.Number("tolerance") * s.Number("tolerance")))
}

// above returns 1 where v > limit, otherwise 0.
func (b *Builder) above(v, limit onnx.Value) onnx.Value {
	return b.Cast(b.Apply("Greater", onnx.Bool, v.Dims, nil, v, limit), onnx.Float)
}

// ones returns a one for each image, [N].
func ones(b *Builder) onnx.Value { return b.Add(b.Zeros(), b.Scalar(1)) }

// asImages returns one number for each image in the shape [N, 1, 1, 1].
func asImages(b *Builder, v onnx.Value) onnx.Value { return b.Reshape(v, v.Dims[0], 1, 1, 1) }

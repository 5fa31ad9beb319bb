package method

import (
	"fmt"
	"slices"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// Builder builds the graph of one step for a batch of N images. It embeds the graph, so a step uses all its
// operations beside the parts that methods share.
type Builder struct {
	*onnx.Graph
	run *Run
	in  Inputs
}

// Inputs are the graph values that a step reads.
type Inputs struct {
	// State holds the state tensors, in their declared order.
	State []onnx.Value
	// Measurement is y; Mask is the batch of encoded masks or kernels, absent without them.
	Measurement, Mask onnx.Value
	// Time is the time index, int64 [1]; Scalars is a row of [Run.Row].
	Time, Scalars onnx.Value
	// Draws holds the noise tensors, in their declared order.
	Draws []onnx.Value
}

// State returns a state tensor. It panics for a name that the method does not declare, as do Planned and Draw.
func (b *Builder) State(name string) onnx.Value {
	i := slices.IndexFunc(b.run.Info.State, func(t Tensor) bool { return t.Name == name })
	if i < 0 {
		panic(fmt.Sprintf("method %s: no state tensor %q", b.run.Info.Name, name))
	}
	return b.in.State[i]
}

// Planned returns a planned scalar, shape [1].
func (b *Builder) Planned(name string) onnx.Value {
	i := slices.Index(b.run.scalars, name)
	if i < 0 {
		panic(fmt.Sprintf("method %s: no scalar %q", b.run.Info.Name, name))
	}
	return b.Slice(b.in.Scalars, 0, i, i+1)
}

// Draw returns a noise tensor, scaled by the planned standard deviation.
func (b *Builder) Draw(name string) onnx.Value {
	i := slices.Index(b.run.Info.Draws, name)
	if i < 0 {
		panic(fmt.Sprintf("method %s: no draw %q", b.run.Info.Name, name))
	}
	return b.in.Draws[i]
}

// Clean returns the prior's prediction of the clean image from x_t, clipped to [−1, 1], or of the clean latent, which has
// no range.
func (b *Builder) Clean(xt onnx.Value) (onnx.Value, error) {
	predicted, err := b.run.Prior.Predict(b.Graph, xt, b.in.Time)
	if err != nil {
		return onnx.Value{}, err
	}
	clean := b.Add(b.Mul(xt, b.Planned(cleanOfX)), b.Mul(predicted, b.Planned(cleanOfPrediction)))
	if b.run.Info.Latent {
		return clean, nil
	}
	return b.Clip(clean, -1, 1), nil
}

// Decode returns the images of latents.
func (b *Builder) Decode(z onnx.Value) (onnx.Value, error) {
	return b.run.Prior.Space().Decode(b.Graph, z)
}

// Encode returns the latents of images.
func (b *Builder) Encode(x onnx.Value) (onnx.Value, error) {
	return b.run.Prior.Space().Encode(b.Graph, x)
}

// Residual returns y − A(x) of images x over the observed entries, in the shape of y.
func (b *Builder) Residual(x onnx.Value) (onnx.Value, error) {
	_, r, err := b.residual(x)
	return r, err
}

// residual returns A(x) and the residual.
func (b *Builder) residual(x onnx.Value) (a operator.Applied, r onnx.Value, err error) {
	op := b.run.Operator
	if a, err = op.Apply(b.Graph, x, b.in.Mask); err != nil {
		return a, r, err
	}
	return a, op.Weighted(b.Graph, b.Minus(b.in.Measurement, a.Y), b.in.Mask), nil
}

// The gradients of the data term.
const (
	GradientNorm    = "norm"    // ∇‖y − A(v)‖₂
	GradientSquared = "squared" // ∇‖y − A(v)‖₂²
)

// Pull returns a gradient step of the data term, −γ·∇ at the images v, and ‖y − A(v)‖ per image, shape [N]. The gradient
// is GradientNorm or GradientSquared, per image over the observed entries. At a zero residual it is zero.
func (b *Builder) Pull(v, gamma onnx.Value, gradient string) (pull, norm onnx.Value, err error) {
	n := v.Dims[0]
	a, r, err := b.residual(v)
	if err != nil {
		return pull, norm, err
	}
	norm = b.Norm(r)
	// −∇ is Jᵀ·W·r over the norm, or twice Jᵀ·W·r.
	var factor onnx.Value
	if gradient == GradientNorm {
		factor = b.Div(gamma, b.Max(norm, b.Scalar(1e-12)))
	} else {
		factor = b.Expand(b.Mul(gamma, b.Scalar(2)), n)
	}
	shape := []int{n}
	for range b.run.Operator.Measurement {
		shape = append(shape, 1)
	}
	seed := b.run.Operator.Weighted(b.Graph, b.Mul(r, b.Reshape(factor, shape...)), b.in.Mask)
	pull, err = a.Gradient(seed)
	return pull, norm, err
}

// PullLatent is Pull at the latents v, for ‖y − A(D(v))‖ with the prior's decoder D.
func (b *Builder) PullLatent(v, gamma onnx.Value, gradient string) (pull, norm onnx.Value, err error) {
	images, err := b.Decode(v)
	if err != nil {
		return pull, norm, err
	}
	if pull, norm, err = b.Pull(images, gamma, gradient); err == nil {
		pull, err = b.Gradient(images, v, pull)
	}
	return pull, norm, err
}

// Zeros returns a zero for each image, shape [N].
func (b *Builder) Zeros() onnx.Value { return b.Expand(b.Scalar(0), b.in.State[0].Dims[0]) }

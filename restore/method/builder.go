package method

import (
	"fmt"
	"slices"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// Builder builds the graph of one step for a batch of N images. It embeds the graph, so a step uses all its
// operations beside the parts that methods share. An operation of a Builder that fails, such as a gradient without a rule, ends
// the building of the step, and [Run.Build] returns the error.
type Builder struct {
	*onnx.Graph
	run *Run
	in  inputs

	tally *tally
	times int    // how often the graph runs in a step
	flag  string // of the steps that compute it, see [Builder.When]; empty: all
}

// graphError is the panic by which an error ends the building of a step.
type graphError struct{ error }

// built returns v, unless the error ends the building of the step.
func built[T any](v T, err error) T {
	if err != nil {
		panic(graphError{err})
	}
	return v
}

// fail ends the building of the step.
func (b *Builder) fail(format string, args ...any) {
	panic(graphError{fmt.Errorf("method %s: %s", b.run.Info.Name, fmt.Sprintf(format, args...))})
}

// inputs are the graph values that a step reads.
type inputs struct {
	state             []onnx.Value // in declared order
	measurement, mask onnx.Value
	weights           onnx.Value // their square roots
	time, scalars     onnx.Value
	draws             []onnx.Value // in declared order
	unroll            int          // see [Run.Build]
}

// State returns a state tensor. It panics for a name that the method does not declare, as do Planned, Listed, Draw and
// DrawAt.
func (b *Builder) State(name string) onnx.Value {
	i := slices.IndexFunc(b.run.Info.State, func(t Tensor) bool { return t.Name == name })
	if i < 0 {
		panic(fmt.Sprintf("method %s: no state tensor %q", b.run.Info.Name, name))
	}
	return b.in.state[i]
}

// Planned returns a planned scalar, shape [1].
func (b *Builder) Planned(name string) onnx.Value { return b.numbers(kindScalar + name) }

// Listed returns number i of a list of [Step.Lists], shape [1]. i is the index of a [Builder.Repeat], or made by Index.
func (b *Builder) Listed(name string, i onnx.Value) onnx.Value { return b.element(kindList+name, i) }

// numbers returns a column of the planned numbers, shape [n].
func (b *Builder) numbers(key string) onnx.Value {
	c, ok := b.run.columns[key]
	if !ok {
		panic(fmt.Sprintf("method %s: the plan has no %s", b.run.Info.Name, quoted(key)))
	}
	return b.Slice(b.in.scalars, 0, c.at, c.at+c.n)
}

// element returns element i of a column, shape [1].
func (b *Builder) element(key string, i onnx.Value) onnx.Value {
	return b.Reshape(b.Gather(b.numbers(key), i), 1)
}

// Draw returns a noise tensor without [Draw.Count], scaled by the planned standard deviation.
func (b *Builder) Draw(name string) onnx.Value {
	i := b.drawIndex(name)
	if b.run.counts[i] > 0 {
		panic(fmt.Sprintf("method %s: draw %q has a count; use DrawAt", b.run.Info.Name, name))
	}
	return b.in.draws[i]
}

// DrawAt returns tensor i of a draw with [Draw.Count], scaled by the planned standard deviation. i is the index of a
// [Builder.Repeat], or made by Index.
func (b *Builder) DrawAt(name string, i onnx.Value) onnx.Value {
	k := b.drawIndex(name)
	if b.run.counts[k] == 0 {
		panic(fmt.Sprintf("method %s: draw %q has no count; use Draw", b.run.Info.Name, name))
	}
	return b.Gather(b.in.draws[k], i)
}

// drawIndex returns the position of a draw.
func (b *Builder) drawIndex(name string) int {
	i := slices.IndexFunc(b.run.Info.Draws, func(d Draw) bool { return d.Name == name })
	if i < 0 {
		panic(fmt.Sprintf("method %s: no draw %q", b.run.Info.Name, name))
	}
	return i
}

// Decode returns the images of latents.
func (b *Builder) Decode(z onnx.Value) onnx.Value {
	return b.autoencode(z, b.run.Prior.Space().Decode)
}

// Encode returns the latents of images.
func (b *Builder) Encode(x onnx.Value) onnx.Value {
	return b.autoencode(x, b.run.Prior.Space().Encode)
}

func (b *Builder) autoencode(in onnx.Value, stage func(*onnx.Graph, onnx.Value) (onnx.Value, error)) onnx.Value {
	out := built(stage(b.Graph, in))
	if b.run.Prior.Space().Latent() {
		b.pass(in, out, Cost{Autoencoder: 1}, Cost{AutoencoderBackward: 1})
	}
	return out
}

// Residual returns y − A(x) of images x over the observed entries, in the shape of y.
func (b *Builder) Residual(x onnx.Value) onnx.Value {
	_, r := b.residual(x)
	return r
}

// apply returns A(x) in the coordinates of the step's measurement.
func (b *Builder) apply(x onnx.Value) operator.Applied {
	return built(b.run.Operator.ApplyShort(b.Graph, x, b.in.mask))
}

// residual returns A(x) and the residual.
func (b *Builder) residual(x onnx.Value) (a operator.Applied, r onnx.Value) {
	a = b.apply(x)
	b.applied(x, a.Y)
	return a, b.weigh(b.Minus(b.in.measurement, a.Y))
}

// weigh multiplies a residual, or a change of A(x), with the square roots of the weights of the data term: with those of a mask, and with those of the pixels of y. A
// gradient has them twice.
func (b *Builder) weigh(r onnx.Value) onnx.Value {
	r = b.run.Operator.Weighted(b.Graph, r, b.in.mask)
	if b.run.Weighted {
		r = b.Mul(r, b.in.weights)
	}
	return r
}

// The gradients of the data term.
const (
	GradientNorm    = "norm"    // ∇‖y − A(v)‖₂
	GradientSquared = "squared" // ∇‖y − A(v)‖₂²
	GradientUnit    = "unit"    // ∇/‖∇‖₂ over the whole image, the same for the norm and its square
)

// Pull returns a gradient step of the data term, −γ·∇ at the images v, and ‖y − A(v)‖ per image, shape [N]. The gradient
// is GradientNorm, GradientSquared or GradientUnit, per image over the observed entries. At a zero residual it is zero.
func (b *Builder) Pull(v, gamma onnx.Value, gradient string) (pull, norm onnx.Value) {
	return b.PullBack(v, gamma, gradient, 0)
}

// PullBack is Pull with a gradient that also passes at saturated entries of A(v), see [operator.Applied.Recover]. With a limit of 0
// it is Pull.
func (b *Builder) PullBack(v, gamma onnx.Value, gradient string, limit float64) (pull, norm onnx.Value) {
	a, r := b.residual(v)
	norm = b.Norm(r)
	// −∇ is Jᵀ·W·r over the norm, or twice Jᵀ·W·r. A unit gradient has the direction of both.
	var factor onnx.Value
	switch gradient {
	case GradientSquared:
		factor = b.Expand(b.Mul(gamma, b.Scalar(2)), v.Dims[0])
	case GradientUnit:
		factor = b.Div(b.Scalar(1), b.Max(norm, b.Scalar(tiny)))
	default:
		factor = b.Div(gamma, b.Max(norm, b.Scalar(tiny)))
	}
	seed := b.weigh(b.perImage(r, factor))
	if limit > 0 {
		pull = built(a.Recover(seed, r, float32(limit)))
	} else {
		pull = built(a.Gradient(seed))
	}
	b.spend(Cost{Operator: 1})
	if gradient == GradientUnit {
		pull = b.unit(pull, gamma)
	}
	return pull, norm
}

// tiny bounds a norm below, where a quotient divides by it: a zero vector over its norm is zero.
const tiny = 1e-12

// unit returns x, [N, ...], with the Euclidean norm gamma per item; zero stays zero.
func (b *Builder) unit(x, gamma onnx.Value) onnx.Value {
	return b.perImage(x, b.Div(gamma, b.Max(b.Norm(x), b.Scalar(tiny))))
}

// perImage returns x, [N, ...], times one factor for each item, [N].
func (b *Builder) perImage(x, factor onnx.Value) onnx.Value {
	return b.Mul(x, asItems(b, factor, len(x.Dims)))
}

// asItems returns one number for each item, [N], in the shape [N, 1, ...] of a rank.
func asItems(b *Builder, v onnx.Value, rank int) onnx.Value {
	return b.Reshape(v, append([]int{v.Dims[0]}, slices.Repeat([]int{1}, rank-1)...)...)
}

// PullLatent is Pull at the latents v, for ‖y − A(D(v))‖ with the prior's decoder D.
func (b *Builder) PullLatent(v, gamma onnx.Value, gradient string) (pull, norm onnx.Value) {
	images := b.Decode(v)
	pull, norm = b.Pull(images, gamma, gradient)
	if pull = b.Gradient(images, v, pull); gradient == GradientUnit {
		pull = b.unit(pull, gamma) // of the gradient by the latent
	}
	return pull, norm
}

// Zeros returns a zero for each image, shape [N].
func (b *Builder) Zeros() onnx.Value { return b.Expand(b.Scalar(0), b.in.state[0].Dims[0]) }

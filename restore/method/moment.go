package method

import (
	"ddiff/internal/restore/axis"
	"ddiff/restore/onnx"
	"ddiff/restore/parameter"
)

// Moment is a time t of the prior's schedule in the graph of a step. Its values have the shape [1] and broadcast over images.
type Moment struct {
	// Alpha is √ᾱ_t, Sigma is √(1−ᾱ_t): a noisy image is Alpha·x + Sigma·ε.
	Alpha, Sigma onnx.Value

	time              onnx.Value // int64
	clean, prediction onnx.Value // the factors of x_t and of the prediction in the clean image
	rows, cols        onnx.Value // 1: mirrored along this axis, 0: not; of mirrorAlternate
}

// Now returns the time of the step.
func (b *Builder) Now() Moment {
	m := b.moment("", b.Index(0))
	m.time = b.in.time
	return m
}

// Moment returns time i of a list of [Step.Times]. i is the index of a [Builder.Repeat], or made by Index. It panics for an
// unknown list.
func (b *Builder) Moment(times string, i onnx.Value) Moment {
	if times == "" {
		panic("method " + b.run.Info.Name + ": a list of times without a name")
	}
	m := b.moment(times, i)
	m.time = b.Cast(b.element(kindTime+times, i), onnx.Int64)
	return m
}

func (b *Builder) moment(times string, i onnx.Value) Moment {
	m := Moment{
		Alpha: b.element(kindAlpha+times, i), Sigma: b.element(kindSigma+times, i),
		clean: b.element(kindClean+times, i), prediction: b.element(kindPrediction+times, i),
	}
	if b.run.Settings.Word(mirrorName) == mirrorAlternate {
		m.rows, m.cols = b.element(kindRows+times, i), b.element(kindCols+times, i)
	}
	return m
}

// The parameter mirror and its values.
const (
	mirrorName      = "mirror"
	mirrorNone      = "none"
	mirrorAlternate = "alternate"
	mirrorAverage   = "average"
	mirrorWays      = 4
)

// Mirror is a parameter for methods on pixels without a gradient through the network: [Builder.Predict] mirrors the image for the network. A prior of
// photographs suits mirrored images as well, but errs otherwise in them, so that the errors of successive steps cancel in part. Terris et al. (Equivariant
// Plug-and-Play Image Reconstruction, CVPR 2024) draw the way at random, Lim et al. (Enhanced Deep Residual Networks, 2017) average.
func Mirror() parameter.Parameter {
	return parameter.Parameter{
		Name: mirrorName, Choices: []string{mirrorNone, mirrorAlternate, mirrorAverage},
		Doc: "the network sees the image as it is (none), mirrored along no, one or both axes, in evaluation i of step k in way k + i of four (alternate), or in all four ways, with the mean prediction (average: four evaluations)",
	}
}

// Predict returns the prediction of the network for x_t at a time, in the shape of x_t: noise, clean image or velocity, as the
// card of the prior declares. Clean and Noise do not depend on the kind of the prediction. The settings may mirror x_t for the network.
func (b *Builder) Predict(xt onnx.Value, at Moment) onnx.Value {
	switch b.run.Settings.Word(mirrorName) {
	case mirrorAlternate:
		mirrored := func(v onnx.Value) onnx.Value {
			return b.ReverseIf(at.cols, b.ReverseIf(at.rows, v, axis.Rows), axis.Cols)
		}
		return mirrored(b.predict(mirrored(xt), at))
	case mirrorAverage:
		both := func(v onnx.Value, along int, f func(v onnx.Value) onnx.Value) onnx.Value {
			return b.Add(f(v), b.Reverse(f(b.Reverse(v, along)), along))
		}
		sum := both(xt, axis.Rows, func(v onnx.Value) onnx.Value {
			return both(v, axis.Cols, func(v onnx.Value) onnx.Value { return b.predict(v, at) })
		})
		return b.Mul(sum, b.Scalar(1.0/mirrorWays))
	}
	return b.predict(xt, at)
}

// predict is Predict of x_t as it is.
func (b *Builder) predict(xt onnx.Value, at Moment) onnx.Value {
	predicted := built(b.run.Prior.Predict(b.Graph, xt, at.time))
	b.pass(xt, predicted, Cost{Network: 1}, Cost{NetworkBackward: 1})
	return predicted
}

// CleanAt returns the prior's prediction of the clean image from x_t at a time, clipped to [−1, 1], or of the clean latent,
// which has no range.
func (b *Builder) CleanAt(xt onnx.Value, at Moment) onnx.Value {
	clean := b.unclipped(xt, at)
	if b.run.Info.Latent {
		return clean
	}
	return b.Clip(clean, -1, 1)
}

// unclipped is CleanAt without the clip.
func (b *Builder) unclipped(xt onnx.Value, at Moment) onnx.Value {
	predicted := b.Predict(xt, at)
	return b.Add(b.Mul(xt, at.clean), b.Mul(predicted, at.prediction))
}

// UnclippedAt returns the prior's clean image of x_t at a time without its clip, and the noise that the network predicts.
func (b *Builder) UnclippedAt(xt onnx.Value, at Moment) (clean, noise onnx.Value) {
	clean = b.unclipped(xt, at)
	return clean, b.NoiseOf(xt, clean, at)
}

// Clean is CleanAt at the time of the step.
func (b *Builder) Clean(xt onnx.Value) onnx.Value { return b.CleanAt(xt, b.Now()) }

// NoiseOf returns the noise of x_t for a clean image, (x_t − √ᾱ_t·clean)/√(1−ᾱ_t).
func (b *Builder) NoiseOf(xt, clean onnx.Value, at Moment) onnx.Value {
	return b.Div(b.Minus(xt, b.Mul(clean, at.Alpha)), at.Sigma)
}

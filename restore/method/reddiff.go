package method

import (
	"fmt"
	"math"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// REDDiff is regularisation by denoising diffusion: variational inference with a point mass at the image μ, whose gradient is that
// of the data term and the error of the prior's noise. Each step at a time t draws ε and takes one step of Adam (β = 0.9 and
// 0.99, ε = 1e−8) with the learning rate lr and the gradient
//
//	x_t = √ᾱ_t·μ + √(1−ᾱ_t)·ε
//	g   = w_t·(ε_θ(x_t, t) − ε)/n + v·∇_μ‖y − A(μ)‖²/(2m)
//
// for images of n and measurements of m elements, with v = obs_weight and w_t = grad_term_weight·f(σ_t), σ_t = √(1−ᾱ_t)/√ᾱ_t.
// denoise_term_weight names f: σ, √σ, σ², ln(1 + σ), min(σ, 1), 1 and σ^(2/3). The times are i·⌊T/S⌋ for i = S−1 … 0.
//
// As in the authors' code, where the paper is silent: ε_θ is that of the network without a clip of the clean image, Adam starts
// from A⁺·y, in which singular values with a factor below 0.03 along an axis count as zero, and the answer is μ before the last
// step of Adam, so that the last evaluation has no effect. The code keeps the coefficients of y with such values, undivided; here
// they are zero. An operator without a decomposition starts from y, HDR from y over its
// scale, and phase retrieval from zeros (the code: the modulus of the inverse transform of y). The code averages over a batch;
// here the gradient is per image.
type redDiff struct{}

// The weightings of the prior's term.
const (
	weightLinear      = "linear"
	weightSqrt        = "sqrt"
	weightSquare      = "square"
	weightLog         = "log"
	weightTruncLinear = "trunc_linear"
	weightConst       = "const"
	weightPower2Over3 = "power2over3"
)

// The starts of RED-diff.
const (
	startPseudoInverse = "pseudo_inverse"
	startMeasurement   = "measurement"
)

// redDiffBeta2 is the factor of Adam's second moment in the authors' code.
const redDiffBeta2 = 0.99

// smallFactor is the factor along an axis below which the authors' code sets singular values to zero.
const smallFactor = 0.03

func (redDiff) Info() Info {
	return Info{
		About:    "regularisation by denoising diffusion, with Adam over the image",
		Citation: "M. Mardani, J. Song, J. Kautz, A. Vahdat: A Variational Perspective on Solving Inverse Problems with Diffusion Models, ICLR 2024",
		Parameters: append(parameter.List{
			{Name: "grad_term_weight", Max: largest, Default: 0.25, Doc: "weight λ of the prior's term"},
			{Name: "obs_weight", Max: largest, Default: 1, Doc: "weight v of the data term"},
			{Name: "denoise_term_weight",
				Choices: []string{weightLinear, weightSqrt, weightSquare, weightLog, weightTruncLinear, weightConst, weightPower2Over3},
				Doc:     "weighting f of the prior's term by the noise level σ_t"},
			{Name: "lr", Max: largest, Open: true, Default: 0.1, Doc: "learning rate of Adam"},
			{Name: "start", Choices: []string{startPseudoInverse, startMeasurement, startFilled},
				Doc: "image from which Adam starts: A⁺·y, y where it has the shape of an image, or that with lost pixels filled from their neighbours"},
			Mirror(),
		}, firstTime(startAtLast, startAtTime)...),
		Steps: 50, Rows: presetRows("reddiff"),
		State: []Tensor{{Name: "x"}, {Name: "moment"}, {Name: "square"}},
		Draws: []Draw{{Name: "noise"}},
		Curves: []Curve{
			{Name: "weight", About: "weight w_t of the prior's term", Scalar: "weight"},
			{Name: "data_norm", About: "‖y − A(μ)‖ over the observed entries"},
			{Name: "prior_norm", About: "‖ε_θ − ε‖"},
			{Name: "delta_x", About: "change of μ"},
		},
	}
}

func (redDiff) Plan(s Settings, schedule Schedule, _ operator.Shape) ([]Step, error) {
	var out []Step
	for i, l := range stridedLevels(schedule, first(s, schedule), s.Steps) {
		weight, err := termWeight(s.Word("denoise_term_weight"), noiseLevel(l.Alpha))
		if err != nil {
			return nil, err
		}
		k := float64(i + 1)
		st := Step{Time: l.Time, Std: map[string]float64{"noise": 1}, Scalars: map[string]float64{
			"first": 0, "weight": s.Number("grad_term_weight") * weight, "obs_weight": s.Number("obs_weight"),
			"rate": s.Number("lr") / (1 - math.Pow(adamBeta1, k)), "unbiased": 1 / (1 - math.Pow(redDiffBeta2, k)),
		}}
		if i == 0 {
			st.Scalars["first"] = 1
		}
		if i == s.Steps-1 {
			st.Scalars["rate"] = 0
		}
		out = append(out, st)
	}
	return out, nil
}

// termWeight is f(σ) of a weighting.
func termWeight(name string, sigma float64) (float64, error) {
	switch name {
	case weightLinear:
		return sigma, nil
	case weightSqrt:
		return math.Sqrt(sigma), nil
	case weightSquare:
		return sigma * sigma, nil
	case weightLog:
		return math.Log(1 + sigma), nil
	case weightTruncLinear:
		return min(sigma, 1), nil
	case weightConst:
		return 1, nil
	case weightPower2Over3:
		return math.Pow(sigma, 2.0/3), nil
	}
	return 0, fmt.Errorf("%w denoise_term_weight: %q is unknown", ErrSetting, name)
}

func (redDiff) Step(b *Builder, s Settings) Next {
	start := redDiffStart(b, s.Word("start"))
	x := b.Add(b.State("x"), b.Mul(start, b.Planned("first"))) // μ, which is zero before the first step
	noise, now := b.Draw("noise"), b.Now()
	xt := b.Add(b.Mul(x, now.Alpha), b.Mul(noise, now.Sigma))
	_, predicted := b.UnclippedAt(xt, now)
	op := b.run.Operator
	gamma := b.Mul(b.Planned("obs_weight"), b.Scalar(float32(0.5/float64(op.MeasurementSize()))))
	pull, dataNorm := b.Pull(x, gamma, GradientSquared)
	wrong := b.Minus(predicted, noise)
	weight := b.Mul(b.Planned("weight"), b.Scalar(float32(1/float64(op.Image.Size()))))
	gradient := b.Minus(b.Mul(wrong, weight), pull)

	// The shares of the gradient are rounded as the differences are: stored results have these bits.
	moment := b.average(b.State("moment"), gradient, adamBeta1, 1-float32(adamBeta1))
	square := b.average(b.State("square"), b.Mul(gradient, gradient), redDiffBeta2, 1-float32(redDiffBeta2))
	root := b.Add(b.Sqrt(b.Mul(square, b.Planned("unbiased"))), b.Scalar(adamEpsilon))
	change := b.Mul(b.Div(moment, root), b.Planned("rate"))
	return Next{
		State: map[string]onnx.Value{"x": b.Minus(x, change), "moment": moment, "square": square},
		Curves: map[string]onnx.Value{
			"data_norm": dataNorm, "prior_norm": b.Norm(wrong), "delta_x": b.Norm(change),
		},
	}
}

// redDiffStart returns the first μ.
func redDiffStart(b *Builder, start string) onnx.Value {
	if start == startFilled {
		return b.Filled()
	}
	op := b.run.Operator
	if start == startPseudoInverse && op.Own == nil {
		if op.Definition.SVD != nil {
			return b.SVD().PseudoInverse(smallFactor)
		}
		if x, ok := op.Inverse(b.Graph, b.in.measurement); ok {
			return x
		}
	}
	return b.Rough()
}

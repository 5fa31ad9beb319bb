package method

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// DiffPIR is denoising diffusion for plug-and-play image restoration: half-quadratic splitting in which the prior's
// proximal step is one evaluation of a diffusion model. From x_T = √ᾱ_T·x_y + √(1−ᾱ_T)·ε, with an image x_y made from y, by default black
// at unobserved pixels, each step from time t to the next s is
//
//	z   = the prior's clean image of x_t, clipped to [−1, 1]
//	x   = argmin_x ‖y − A(x)‖² + ρ_t·‖x − z‖², with ρ_t = λ·(σ/2)²/σ̄_t² and σ̄_t² = (1−ᾱ_t)/ᾱ_t
//	ε̂   = (x_t − √ᾱ_t·x)/√(1−ᾱ_t)
//	x_s = √ᾱ_s·x + √(1−ᾱ_s)·(√(1−ζ)·ε̂ + √ζ·ε)
//
// and the answer is x_t of the last step, or x with the parameter answer. For an operator with a singular value decomposition A = U·S·Vᵀ the minimum is
//
//	x = z + V·S/(S² + ρ_t)·Uᵀ·(y − A(z))
//
// For the others cg_steps iterations of conjugate gradients approximate it, see [Builder.Proximal]. With cg_steps 0, and for data_step gradient, a
// step of gradient descent replaces it:
//
//	x = z − γ_t·∇_z‖y − A(z)‖², with γ_t = min(gamma_max, 1/(2ρ_t))
//
// This step overshoots where σ̄_t is large; gamma_max bounds it, and 1/2 goes no further than the measurement for an
// operator of norm 1. Without the bound, and with the paper's start, end and σ, it is DDiff-HQS with γ_t as above, σ_t = √(ζ·(1−ᾱ_s))
// and no t0 (appendix "Relating DDiff and DiffPIR" of the DDiff paper).
//
// As in the authors' code, other than in the paper: σ is that of images in [0, 1], half of the σ here. The times are
// T−1 − ⌊T·√(i/(S−1))⌋, quadratic, and 0 in the end. The paper starts from noise, and ends with x at ᾱ_s = 1: the code evaluates
// the network at the last time, but returns x_t, whose noise has the level of time 0. The code's blur is circular, so that it
// divides in Fourier space also for motion blur; with the reflected border of this program motion blur has no closed form. The code does not bound the gradient step.
type diffPIR struct{}

// dataAnalytic is the exact solution of the data term, in place of a step along its gradient.
const dataAnalytic = "analytic"

// The times of DiffPIR.
const (
	skipQuad    = "quad"
	skipUniform = "uniform"
)

func (diffPIR) Info() Info {
	return Info{
		About: "plug-and-play restoration by half-quadratic splitting and a diffusion model",
		Citation: "Y. Zhu, K. Zhang, J. Liang, J. Cao, B. Wen, R. Timofte, L. Van Gool: Denoising Diffusion Models for " +
			"Plug-and-Play Image Restoration, CVPR 2023 Workshops",
		Parameters: slices.Concat(parameter.List{
			{Name: "lambda", Schedule: true, Max: largest, Open: true, Default: 7, Doc: "weight λ of the prior against the measurement"},
			{Name: "zeta", Max: 1, Default: 0.3, Doc: "share ζ of new noise in the noise of a step: 0 deterministic, 1 all new"},
			{Name: "noise_std", Min: 0.001, Max: 1, Default: 0.05, Unit: "units of y",
				Doc: "standard deviation σ of the measurement noise that the method assumes; the campaign's sigma unless it is set"},
			{Name: "gamma_max", Max: largest, Open: true, Default: 0.5, Doc: "upper bound of the step size γ_t of the gradient step"},
			{Name: "data_step", Choices: []string{dataAnalytic, dataGradient},
				Doc: "solution of the data term: exact where the operator has a singular value decomposition, or a gradient step"},
			{Name: "skip_type", Choices: []string{skipQuad, skipUniform}, Doc: "distances of the times: quadratic, or equal"},
			{Name: "cg_steps", Max: 100, Integer: true,
				Doc: "iterations of conjugate gradients in place of the gradient step, for operators without a decomposition; 0: the gradient step"},
			{Name: "answer", Choices: []string{answerState, answerPrimal},
				Doc: "the result: x_t, the state before the last step, as in the authors' code, or x, the solution of the last data term"},
			Mirror(),
		}, firstTime(startAtLast, startAtTime, startAtNoise), parameter.List{
			{Name: "start", Choices: []string{startBlack, startRough, startFilled},
				Doc: "image x_y that the run begins with: y or A⁺·y (rough), black at lost pixels, or with these filled from their neighbours"},
		}),
		NoiseStd: "noise_std",
		Steps:    100, Rows: presetRows("diffpir"),
		State: []Tensor{{Name: "x", Noise: true}},
		Draws: []Draw{{Name: "noise"}},
		Curves: []Curve{
			{Name: "gamma", About: "step size γ_t of the gradient step", Scalar: "gamma"},
			{Name: "data_norm", About: "‖y − A(z)‖ over the observed entries"},
			{Name: "primal_norm", About: "‖x − z‖"},
			{Name: "rho", About: "weight ρ_t of the prior in the data term", Scalar: "rho"},
		},
	}
}

func (diffPIR) Plan(s Settings, schedule Schedule, _ operator.Shape) ([]Step, error) {
	levels, err := lateLevels(s, schedule)
	if err == nil && s.Word("skip_type") == skipQuad {
		levels, err = quadraticLevels(schedule, first(s, schedule), s.Steps)
	}
	if err != nil {
		return nil, err
	}
	var out []Step
	for i, l := range levels {
		rho := proximalWeight(s, l, i)
		kept := math.Sqrt((1 - l.Next) * (1 - s.Number("zeta")) / (1 - l.Alpha)) // factor of x_t − √ᾱ_t·x
		st := Step{
			Time: l.Time,
			Scalars: map[string]float64{
				"rho": rho, "gamma": min(0.5/rho, s.Number("gamma_max")), startOfState: 1, "start_of_y": 0,
				"next_of_x": math.Sqrt(l.Next) - kept*math.Sqrt(l.Alpha), "next_of_xt": kept,
			},
			Std: map[string]float64{"noise": math.Sqrt((1 - l.Next) * s.Number("zeta"))},
		}
		if i == 0 {
			st.Scalars[startOfState], st.Scalars["start_of_y"] = math.Sqrt(1-l.Alpha), math.Sqrt(l.Alpha)
		}
		if i == len(levels)-1 {
			st.Scalars["next_of_x"], st.Scalars["next_of_xt"], st.Std = 0, 1, nil
			if s.Word("answer") == answerPrimal {
				st.Scalars["next_of_x"], st.Scalars["next_of_xt"] = 1, 0
			}
		}
		out = append(out, st)
	}
	return out, nil
}

// quadraticLevels are n levels from the time start, dense near 0.
func quadraticLevels(s Schedule, start, n int) ([]Level, error) {
	total := float64(start + 1)
	times := make([]int, n)
	for i := range times {
		times[i] = start - int(math.Sqrt(total*total*float64(i)/float64(n-1)))
	}
	times[n-1] = 0
	for i, t := range times[1:] {
		if t >= times[i] {
			return nil, fmt.Errorf("%w steps: %d quadratic steps have equal times, use at most %d or skip_type: uniform", ErrSetting, n, (start+1)/2)
		}
	}
	return levelsAt(s, times), nil
}

func (diffPIR) Step(b *Builder, s Settings) Next {
	begin := b.begin(s)
	if op := b.run.Operator; s.Word("start") == startBlack && op.Masked() && !op.Required {
		begin = b.Add(begin, b.Minus(b.in.mask, b.Scalar(1)))
	}
	xt := b.Add(b.Mul(b.State("x"), b.Planned(startOfState)), b.Mul(begin, b.Planned("start_of_y")))
	z := b.Clean(xt)
	change, dataNorm := diffPIRChange(b, s, z)
	x := b.Add(z, change)
	next := b.Add(b.Add(b.Mul(x, b.Planned("next_of_x")), b.Mul(xt, b.Planned("next_of_xt"))), b.Draw("noise"))
	return Next{
		State:  map[string]onnx.Value{"x": next},
		Curves: map[string]onnx.Value{"data_norm": dataNorm, "primal_norm": b.Norm(change)},
	}
}

// diffPIRChange returns x − z of the data term, and ‖y − A(z)‖.
func diffPIRChange(b *Builder, s Settings, z onnx.Value) (change, norm onnx.Value) {
	if s.Word("data_step") == dataAnalytic {
		_, err := b.run.Operator.SVD()
		if iterations := int(s.Number("cg_steps")); err == nil || iterations > 0 {
			return b.Proximal(z, b.Planned("rho"), s.Number("noise_std"), iterations, 0)
		}
		if !errors.Is(err, operator.ErrNoSVD) {
			panic(graphError{fmt.Errorf("%w; set cg_steps, or data_step: gradient", err)})
		}
	}
	return b.Pull(z, b.Planned("gamma"), GradientSquared)
}

package solver

import (
	"maps"
	"math"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// posterior is the Gaussian posterior of a linear inverse problem with a Gaussian prior N(0, S), in the prior's space: the
// precision Λ = BᵀB/σ² + S⁻¹ and the mean Λ⁻¹·Bᵀy/σ², with B = A for pixels and B = A·D for latents.
type posterior struct {
	prior     *prior.Prior
	op        *operator.Operator
	y, draw   []float32
	weights   []float32 // nil: all 1
	precision [][]float64
	mean      []float64
	// project returns the coordinates of an image in the prior's space.
	project func(x []float32) []float64
}

const (
	posteriorSigma  = 0.04
	posteriorChains = 32
)

// newPosterior measures an image of the prior with random inpainting, which leaves a part of the image to the prior.
func newPosterior(t *testing.T, latent bool) posterior {
	return scaledPosterior(t, newOperator(t, operator.InpaintRandom, posteriorShape), latent, 1)
}

var posteriorShape = operator.Shape{Channels: 1, Height: 16, Width: 16}

// scaledPosterior is newPosterior of an operator, with a factor of the image and of the noise: a schedule has no levels below 0.01.
func scaledPosterior(t *testing.T, op *operator.Operator, latent bool, scale float64) posterior {
	t.Helper()
	shape := op.Image
	p := posterior{op: op}
	variance := make([]float32, shape.Size())
	if latent {
		variance = variance[:shape.Size()/4]
	}
	for i := range variance {
		variance[i] = (0.03 + 0.02*float32(i%5)/4) * float32(scale*scale)
	}
	var err error
	key := noise.Key{17}
	p.draw, err = p.op.Encode(p.op.Draw(key))
	must(t, err)
	z := make([]float32, len(variance))
	noise.Normal(z, key, noise.Start, 1, 1)
	for i, v := range variance {
		z[i] *= float32(math.Sqrt(float64(v)))
	}
	b := columns(t, p.op, p.draw)
	p.project = float64s
	if latent {
		stage := newLinearStage(shape, operator.Shape{Channels: 1, Height: 8, Width: 8}, 1)
		p.prior = linearPrior(t, stage, variance)
		b = product(b, stage.decode)
		p.project = func(x []float32) []float64 { return apply(stage.encode, float64s(x)) }
	} else {
		p.prior = gaussianPrior(t, posteriorChains, shape, variance)
	}
	p.y = make([]float32, p.op.MeasurementSize())
	sigma := posteriorSigma * scale
	noise.Normal(p.y, key, noise.Measurement, 0, sigma)
	for i, v := range apply(b, float64s(z)) {
		p.y[i] += float32(v)
	}
	back := transpose(b)
	p.precision = product(back, b)
	right := apply(back, float64s(p.y))
	for i := range p.precision {
		for j := range p.precision[i] {
			p.precision[i][j] /= sigma * sigma
		}
		p.precision[i][i] += 1 / float64(variance[i])
		right[i] /= sigma * sigma
	}
	p.mean = solveLinear(p.precision, right)
	return p
}

// quadratic returns vᵀ·Λ·v per dimension.
func (p posterior) quadratic(v []float64) float64 {
	sum := 0.0
	for i, w := range apply(p.precision, v) {
		sum += v[i] * w
	}
	return sum / float64(len(v))
}

// moments restores the measurement with different keys. bias is the distance of the answers' expectation from the posterior mean, spread
// the variance of the answers, both in units of the posterior and per dimension: the answers of an exact sampler have the bias 0
// and the spread 1. The expected share of the spread in the bias is subtracted.
func (p posterior) moments(t *testing.T, run *method.Run) (bias, spread float64) {
	t.Helper()
	s := compile(t, onnxtest.Runtime(t), run, posteriorChains, Build{})
	probs := make([]Problem, posteriorChains)
	for i := range probs {
		probs[i] = Problem{Y: p.y, Draw: p.draw, Weights: p.weights, Key: noise.Key{uint32(i), 5}}
	}
	got := solve(t, s, probs)
	mean := make([]float64, len(p.mean))
	answers := make([][]float64, len(got))
	for k, a := range got {
		answers[k] = p.project(a.X)
		for i, v := range answers[k] {
			mean[i] += v / float64(len(got))
		}
	}
	for _, a := range answers {
		spread += p.quadratic(difference(a, mean)) / float64(len(got)-1)
	}
	return math.Sqrt(max(0, p.quadratic(difference(mean, p.mean))-spread/float64(len(got)))), spread
}

// difference returns a − b.
func difference(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] - b[i]
	}
	return out
}

// expectation states the answers of a method under a Gaussian posterior.
type expectation struct {
	steps  int
	values map[string]any // settings other than those of the preset
	// bias is the largest distance from the posterior mean in posterior standard deviations. That of the prior's mean is above 2.
	bias float64
	// low and high bound the spread of a method that samples.
	low, high float64
}

// expectations has every built-in method. The bounds follow from the approximations of the methods:
//
//   - DAPS and LatentDAPS replace the covariance of x given x_t by σ²·I and discretise the chain, whose spread grows with the step
//     size, by 1/(1 − η·Λ/2) in each direction. Their bias is that of the ODE's few steps.
//   - DPS and PSLD replace the likelihood of x_t by that of its clean image. This neglects the variance of x given x_t:
//     the data term is too strong, so that the answers spread less than the posterior.
//   - PiGDM takes the variance of x given x_t of a prior with variance 1, for every prior.
//   - DDRM and DDNM sample the posterior of each singular value at each noise level with the share eta of new noise, and
//     take the clean image of the prior for certain.
//   - PnPDM samples the posterior, with the variance rho_min² beside that of the noise. The schedule has few levels near 0.01, which costs spread
//     here, and none in [TestGibbsSamplesThePosterior].
//   - Flower weighs prior and data as a posterior of a prior with variance 1. PnP-Flow with a constant step fits the measurement.
//   - The answers of the others are estimates. The data term of DDiff and its ablations has a constant step size, so that its weight
//     grows as the noise falls, and they go from the posterior mean towards the measurement's exact fit; that of DiffPIR has the
//     weight of the posterior. DMPlug, DCDP, FAST-DIPS, SITCOM and ReSample fit the measurement. The exact fit is least squares, whose noise is not
//     shrunk: it is 0.2 posterior deviations away for pixels, 0.6 for latents.
func expectations() map[string]expectation {
	ddiff := map[string]any{
		"gamma0": 0.1, "a": 1.0, "b": 1.0, "t_gamma": 1, "t0": 0, "gradient": method.GradientSquared, "sigma_rule": "full",
	}
	pnp, latent := maps.Clone(ddiff), maps.Clone(ddiff)
	delete(pnp, "t0")
	delete(pnp, "sigma_rule")
	latent["mode"], latent["gamma0"] = "latent_dc", 0.4
	// The gradient of the chains is that of ‖y − A(w)‖²/τ², twice that of the posterior.
	tau := posteriorSigma * math.Sqrt2
	return map[string]expectation{
		"ddiff":         {steps: 400, values: ddiff, bias: 0.4},
		"ddiff_hqs":     {steps: 400, values: ddiff, bias: 0.4},
		"diff_pnp_admm": {steps: 400, values: pnp, bias: 0.4},
		"diff_pnp_hqs":  {steps: 400, values: pnp, bias: 0.4},
		"dpir":          {steps: 400, values: map[string]any{"lambda": 1.0, "noise_std": posteriorSigma, "t_start": 999}, bias: 0.2},
		"diffpir":       {steps: 400, values: map[string]any{"lambda": 1.0, "zeta": 1.0, "noise_std": posteriorSigma}, bias: 0.2},
		"reddiff":       {steps: 400, values: map[string]any{}, bias: 0.4},
		"ddrm":          {steps: 400, values: map[string]any{"noise_std": posteriorSigma}, bias: 0.4, low: 0.5, high: 1.3},
		"ddnm":          {steps: 400, values: map[string]any{"noise_std": posteriorSigma}, bias: 0.4, low: 0.5, high: 1.3},
		"dcdp":          {steps: 20, values: map[string]any{}, bias: 0.4},
		"dps":           {steps: 400, values: map[string]any{"scale": 3.0}, bias: 0.25, low: 0.5, high: 1.05},
		"pigdm":         {steps: 400, values: map[string]any{"noise_std": posteriorSigma}, bias: 0.2, low: 0.5, high: 1.05},
		"daps": {steps: 200, values: map[string]any{
			"tau": tau, "lr": 1e-4, "lr_ratio": 0.1, "sigma_min": 0.02, "ode_end": 0.001, "chain_steps": 50,
		}, bias: 0.2, low: 0.9, high: 1.3},
		"fast_dips": {steps: 200, values: map[string]any{"sigma_min": 0.02}, bias: 0.4},
		"pnpdm": {steps: 100, values: map[string]any{
			"noise_std": math.Sqrt(posteriorSigma*posteriorSigma - 0.03*0.03), "rho": 0.5, "rho_decay": 0.95, "rho_min": 0.03, "sde_steps": 20, "chain_steps": 1,
		}, bias: 0.2, low: 0.7, high: 1.1},
		"pnp_flow":     {steps: 400, values: map[string]any{"alpha": 0.0}, bias: 0.4},
		"flower":       {steps: 400, values: map[string]any{"noise_std": posteriorSigma}, bias: 0.4},
		"sitcom":       {steps: 100, values: map[string]any{"noise_std": posteriorSigma}, bias: 0.4},
		"dmplug":       {steps: 300, values: map[string]any{"lr": 0.05}, bias: 0.4},
		"latent_ddiff": {steps: 400, values: latent, bias: 0.4},
		"latent_daps":  {steps: 100, values: map[string]any{"tau": tau, "lr": 1e-4, "sigma_min": 0.02}, bias: 0.2, low: 0.9, high: 1.3},
		"psld":         {steps: 400, values: map[string]any{"omega": 0.3, "gamma": 0.0, "eta": 1.0}, bias: 0.4},
		"resample":     {steps: 200, bias: 0.8},
	}
}

// checkPosterior compares the answers of a method with the known posterior of a Gaussian prior: their mean, and the covariance of
// a method that samples.
func checkPosterior(t *testing.T, m method.Method) {
	t.Helper()
	info := m.Info()
	want, ok := expectations()[info.Name]
	if !ok {
		t.Fatalf("no expectation of the answers of %s under a Gaussian posterior: add one", info.Name)
	}
	p := newPosterior(t, info.Latent)
	if zero := math.Sqrt(p.quadratic(p.mean)); !(zero > 2) {
		t.Fatalf("the prior's mean is %.2f posterior deviations away: the measurement says too little", zero)
	}
	if info.Samples != (want.high > 0) {
		t.Errorf("the method declares that it samples: %v; the expectation has a spread: %v", info.Samples, want.high > 0)
	}
	preset := "natural"
	if info.Name == "ddiff" {
		preset = "gradient"
	}
	settings := resolve(t, method.Request{Method: info.Name, Preset: preset, Task: p.op.Task, Steps: want.steps, Values: gamma()})
	for name, v := range want.values {
		settings = with(settings, name, v)
	}
	bias, spread := p.moments(t, newRun(t, p.prior, p.op, settings))
	t.Logf("bias %.3f, spread %.3f", bias, spread)
	if !(bias <= want.bias) {
		t.Errorf("the answers' mean is %.2f posterior deviations from the posterior mean, want at most %.2f", bias, want.bias)
	}
	if want.high > 0 && !(want.low <= spread && spread <= want.high) {
		t.Errorf("the answers have %.2f times the covariance of the posterior, want %.2f to %.2f", spread, want.low, want.high)
	}
}

package solver

import (
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// TestGibbsSamplesThePosterior: the answers of pnpdm have the mean and the variances of a known posterior, and their 90 % intervals its probability,
// all within five standard errors of the samples. The coupling adds the variance rho_min² to that of the noise, which noise_std leaves out here.
func TestGibbsSamplesThePosterior(t *testing.T) {
	if testing.Short() {
		t.Skip("draws many samples: make test-all")
	}
	t.Parallel()
	const (
		scale, batches = 15, 4
		n              = batches * posteriorChains
		sigma, rho     = posteriorSigma * scale, 0.7 * posteriorSigma * scale
	)
	p := scaledPosterior(t, newOperator(t, operator.InpaintRandom, posteriorShape), false, scale)
	settings := resolve(t, method.Request{Method: "pnpdm", Preset: "natural", Task: p.op.Task, Steps: 60})
	settings = with(settings, "rho", 10*sigma, "rho_min", rho, "sde_steps", 60, "chain_steps", 1, "noise_std", math.Sqrt(sigma*sigma-rho*rho))
	s := compile(t, onnxtest.Runtime(t), newRun(t, p.prior, p.op, settings), posteriorChains, Build{})
	values := make([][]float64, len(p.mean)) // of each pixel
	for batch := range uint32(batches) {
		probs := make([]Problem, posteriorChains)
		for i := range probs {
			probs[i] = Problem{Y: p.y, Draw: p.draw, Key: noise.Key{uint32(i), batch, 6}}
		}
		for _, a := range solve(t, s, probs) {
			for i, v := range a.X {
				values[i] = append(values[i], float64(v))
			}
		}
	}
	probability := func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
	var mean, variance, covered float64
	for i, x := range values {
		deviation := math.Sqrt(1 / p.precision[i][i]) // the precision of a mask and independent pixels is diagonal
		for k, v := range x {
			x[k] = (v - p.mean[i]) / deviation
		}
		m := 0.0
		for _, z := range x {
			m += z / n
		}
		for _, z := range x {
			variance += (z - m) * (z - m) / (n - 1) / float64(len(values))
		}
		mean += m * m * n / float64(len(values))
		slices.Sort(x)
		covered += (probability(x[n-1-n/20]) - probability(x[n/20])) / float64(len(values))
	}
	pixels := float64(len(values))
	expected := float64(n-1-2*(n/20)) / (n + 1)
	t.Logf("squared error of the mean in standard errors %.3f, variance %.3f, probability of the intervals %.4f of %.4f", mean, variance, covered, expected)
	check := func(what string, got, want, deviation float64) {
		if !(math.Abs(got-want) <= 5*deviation) {
			t.Errorf("%s is %.4f, want %.4f ± %.4f", what, got, want, 5*deviation)
		}
	}
	check("the squared error of the mean in standard errors", mean, 1, math.Sqrt(2/pixels))
	check("the share of the variance", variance, 1, math.Sqrt(2/(n*pixels)))
	check("the probability of the intervals", covered, expected, math.Sqrt(expected*(1-expected)/(n*pixels)))
}

// TestGibbsWithWeights: the answers of pnpdm to a measurement whose pixels have weights w have the mean and the spread of the posterior for its draws, for noise of the
// covariance σ²/w² + ρ²·A·Aᵀ, with and without pixels of their own.
func TestGibbsWithWeights(t *testing.T) {
	if testing.Short() {
		t.Skip("draws many samples: make test-all")
	}
	t.Parallel()
	const scale, sigma, rho = 15, posteriorSigma * 15, 3 * posteriorSigma * 15
	blur, err := operator.Builtin().New(operator.GaussianDeblur, map[string]float64{"size": 9 * 16, "std": 16}, posteriorShape) // in pixels of 256
	must(t, err)
	for _, op := range []*operator.Operator{newOperator(t, operator.Denoise, posteriorShape), blur, newOperator(t, operator.SuperResolution, posteriorShape)} {
		p := scaledPosterior(t, op, false, scale)
		p.weights = make([]float32, len(p.y))
		a, weighted := columns(t, op, p.draw), make([][]float64, len(p.y)) // A, and W²·A/σ²
		for i, row := range a {
			p.weights[i] = [...]float32{0, 0.5, 0, 1, 0}[i%5]
			weighted[i] = make([]float64, len(row))
			for j, v := range row {
				weighted[i][j] = v * float64(p.weights[i]*p.weights[i]) / (sigma * sigma)
			}
		}
		// exp(−xᵀΛx/2 + xᵀb) of z with N(z; x, ρ²·I) is exp(−xᵀKΛx/2 + xᵀKb) of x, with K = (1 + ρ²·Λ)⁻¹.
		lambda := product(transpose(a), weighted)
		smooth := make([][]float64, len(lambda)) // 1 + ρ²·Λ
		for i, row := range lambda {
			smooth[i] = make([]float64, len(row))
			for j, v := range row {
				smooth[i][j] = rho * rho * v
			}
			smooth[i][i]++
		}
		for j, column := range transpose(lambda) {
			for i, v := range solveLinear(smooth, column) {
				p.precision[i][j] = v
			}
		}
		for i := range p.precision {
			p.precision[i][i] += 1 / (float64(0.03+0.02*float32(i%5)/4) * scale * scale)
		}
		p.mean = solveLinear(p.precision, solveLinear(smooth, apply(transpose(weighted), float64s(p.y))))

		settings := resolve(t, method.Request{Method: "pnpdm", Preset: "natural", Task: op.Task, Steps: 60})
		run := newRun(t, p.prior, op, with(settings, "rho", 10*sigma, "rho_min", rho, "sde_steps", 40, "chain_steps", 1, "noise_std", sigma))
		run.Weighted = true
		bias, spread := p.moments(t, run)
		t.Logf("%s: bias %.3f, spread %.3f", op.Task, bias, spread)
		if !(bias <= 0.1) || !(math.Abs(spread-1) <= 0.03) {
			t.Errorf("%s: bias %.3f, spread %.3f of the posterior, want at most 0.1, and 1 ± 0.03", op.Task, bias, spread)
		}
	}
}

// TestFlowerSamplesThePosterior: with gamma 1 and a prior of a variance near 1, for which its ν² is that of x given x_t, the answers of flower have the mean and
// nearly the variance of a known posterior.
func TestFlowerSamplesThePosterior(t *testing.T) {
	t.Parallel()
	const scale = 5 // variances from 0.75 to 1.25
	p := scaledPosterior(t, newOperator(t, operator.InpaintRandom, posteriorShape), false, scale)
	settings := resolve(t, method.Request{Method: "flower", Preset: "natural", Task: p.op.Task, Steps: 200})
	for gamma, want := range map[float64][2]float64{0: {0.2, 0.7}, 1: {0.9, 1.1}} {
		bias, spread := p.moments(t, newRun(t, p.prior, p.op, with(settings, "noise_std", posteriorSigma*scale, "gamma", gamma)))
		t.Logf("gamma %g: bias %.3f, spread %.3f", gamma, bias, spread)
		if !(bias <= 0.1) || !(want[0] <= spread && spread <= want[1]) {
			t.Errorf("gamma %g: bias %.3f, spread %.3f, want at most 0.1, and %v", gamma, bias, spread, want)
		}
	}
	motion := newOperator(t, operator.MotionDeblur, p.op.Image)
	_, err := New(onnxtest.Runtime(t), newRun(t, p.prior, motion, with(settings, "gamma", 1.0)), 1, Build{})
	if err == nil || !strings.Contains(err.Error(), "set gamma: 0") {
		t.Errorf("gamma without a decomposition: error %v", err)
	}
}

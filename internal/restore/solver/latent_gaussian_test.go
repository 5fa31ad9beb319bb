package solver

import (
	"math"
	"slices"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// latentVariants are the readings of Algorithm 2.
func latentVariants() map[string][]any {
	return map[string][]any{
		"latent_dc":        {"mode", "latent_dc"},
		"latent_dc, plain": {"mode", "latent_dc", "reencode", "never"},
		"pixel":            {"mode", "pixel_dc", "dual", "pixel"},
		"latent":           {"mode", "pixel_dc", "dual", "latent"},
		"tangent":          {"mode", "pixel_dc", "dual", "tangent"},
	}
}

// latentSettings are those of latent_ddiff with changes in pairs.
func latentSettings(t testing.TB, task string, steps int, changes ...any) method.Settings {
	t.Helper()
	return with(resolve(t, method.Request{Method: "latent_ddiff", Preset: "ffhq", Task: task, Steps: steps}), changes...)
}

// With a linear autoencoder, E·D = I and D = s·Q with orthonormal columns, independent Gaussian latents N(0, S) and a linear
// A, the fixed point of each reading is known. Held at one noise level τ² = (1−ᾱ)/ᾱ, without added
// noise and with the full rule, x = z̃ and z_t = √ᾱ·(I + P)·z̃ with P = τ²·S⁻¹, and
//
//	latent_dc                  (P + 2γ·DᵀAᵀAD·(I − P))·z̃ = 2γ·DᵀAᵀy
//	pixel_dc, latent, tangent  (P + 2γ·EAᵀAD·(I − P))·z̃ = 2γ·EAᵀy
//	pixel_dc, pixel            (P + 2γ·EAᵀNAD)·z̃ = 2γ·EAᵀNy, with N = (I − 2γ·AAᵀ)⁻¹
//
// As P → 0 all of them are the posterior mean (DᵀAᵀAD + σ²·S⁻¹)·z̃ = DᵀAᵀy, with σ² = τ²/(2γ) for latent_dc and σ² = s²·τ²/(2γ)
// for pixel_dc.
func TestLatentGaussianFixedPoint(t *testing.T) {
	t.Parallel()
	const scale, at, gamma, steps = 1.5, 2, 0.1, 4000
	image, latent := operator.Shape{Channels: 1, Height: 16, Width: 16}, operator.Shape{Channels: 1, Height: 8, Width: 8}
	ae := newLinearStage(image, latent, scale)
	variance := make([]float32, latent.Size())
	for i := range variance {
		variance[i] = 0.02 + 0.03*float32(i%7)/6
	}
	p := linearPrior(t, ae, variance)
	alpha := p.Schedule.AlphaBar[at]
	tau := (1 - alpha) / alpha
	for _, task := range []string{operator.GaussianDeblur, operator.InpaintRandom, operator.SuperResolution} {
		op := newOperator(t, task, image)
		key := noise.Key{11}
		draw := encoded(t, op, key)
		a := columns(t, op, draw)
		truth := make([]float32, latent.Size())
		noise.Normal(truth, key, noise.Start, 1, 0.15)
		y := make([]float32, op.MeasurementSize())
		noise.Normal(y, key, noise.Measurement, 0, 0.01)
		for i, v := range apply(product(a, ae.decode), float64s(truth)) {
			y[i] += float32(v)
		}
		for name, changes := range latentVariants() {
			t.Run(task+" "+name, func(t *testing.T) {
				t.Parallel()
				cfg := latentSettings(t, task, 50, append(slices.Clone(changes), "gamma0", gamma, "a", 1, "b", 1, "gradient", method.GradientSquared)...)
				run := planRun(t, held{named(t, "latent_ddiff"), at, steps, []string{"next_of_clean"}, []string{"next_of_noise", "next_of_xt"}}, cfg, p, op)
				got := solve(t, compile(t, onnxtest.Runtime(t), run, 1, Build{}), []Problem{{Y: y, Draw: draw, Key: key}})
				fixed, mean := latentClosedForms(name, ae, a, y, variance, tau, gamma, scale)
				worst, far := 0.0, 0.0
				for i, v := range apply(ae.encode, float64s(got[0].X)) {
					found := v / math.Sqrt(alpha) / (1 + tau/float64(variance[i]))
					worst, far = max(worst, math.Abs(found-fixed[i])), max(far, math.Abs(fixed[i]-mean[i]))
				}
				if !(worst <= 1e-4) || !(far <= 0.02) {
					t.Errorf("distance %.2g from the closed form, want at most 1e-4; its distance from the posterior mean is %.2g, want at most 0.02", worst, far)
				}
				primal := got[0].Curves.Curve("primal_norm")
				if r := primal[len(primal)-1]; !(r <= 1e-4) {
					t.Errorf("the primal norm is %.2g at the end, want 0", r)
				}
			})
		}
	}
}

// latentClosedForms solves for the fixed point of a reading and for the posterior mean that it approximates.
func latentClosedForms(name string, ae linearStage, a [][]float64, y []float32, variance []float32, tau, gamma, scale float64) (fixed, mean []float64) {
	ad, at := product(a, ae.decode), transpose(a)
	back, sigma2 := product(transpose(ae.decode), at), tau/(2*gamma) // DᵀAᵀ
	exact := back
	weight := func(i int) float64 { return 1 - tau/float64(variance[i]) }
	if name == "pixel" || name == "latent" || name == "tangent" {
		back, sigma2 = product(ae.encode, at), scale*scale*sigma2 // EAᵀ
	}
	if name == "pixel" {
		m := product(a, at)
		for i := range m {
			for j := range m {
				m[i][j] *= -2 * gamma
			}
			m[i][i]++
		}
		back = transpose(solveColumns(m, transpose(back))) // EAᵀN, as N is symmetric
		weight = func(int) float64 { return 1 }
	}
	system := func(back [][]float64, factor float64, weight func(int) float64, diagonal func(int) float64) []float64 {
		m, rhs := product(back, ad), apply(back, float64s(y))
		for i := range m {
			for j := range m[i] {
				m[i][j] *= factor * weight(j)
			}
			m[i][i] += diagonal(i)
			rhs[i] *= factor
		}
		return solveLinear(m, rhs)
	}
	fixed = system(back, 2*gamma, weight, func(i int) float64 { return tau / float64(variance[i]) })
	mean = system(exact, 1, func(int) float64 { return 1 }, func(i int) float64 { return sigma2 / float64(variance[i]) })
	return fixed, mean
}

// solveColumns solves a·x = b for each column of b.
func solveColumns(a, b [][]float64) [][]float64 {
	var out [][]float64
	for _, column := range transpose(b) {
		out = append(out, solveLinear(a, column))
	}
	return transpose(out)
}

package solver

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"ddiff/internal/restore/noise"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// The exact data step of ddiff with a Gaussian prior, with and without noise in the null space and the unsharp mask of the last step, is the solution of
// linear systems per step.
func TestExactStepInClosedForm(t *testing.T) {
	t.Parallel()
	const lambda, sigma = 2, 0.1
	for _, c := range []struct {
		noise   string
		sharpen float64
	}{{"none", 0}, {"none", 3}, {"null_space", 0}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			e := newExample(t, operator.SuperResolution, 16)
			n, alphas := len(e.variance), e.prior.Schedule.AlphaBar
			x, u := e.pseudoInverse(t), mat.NewVecDense(n, nil)
			noisy := x
			times := []int{120, 80, 40, 0}
			for k, at := range times {
				tau2 := (1 - alphas[at]) / alphas[at]
				z := e.clean(combine(math.Sqrt(alphas[at]), noisy, math.Sqrt(alphas[at]), u), alphas[at])
				v, rho := combine(1, z, -1, u), lambda*sigma*sigma/4/tau2
				next := 0.0
				if k < len(times)-1 {
					next = (1 - alphas[times[k+1]]) / alphas[times[k+1]]
				} else if c.sharpen > 0 {
					v, rho = combine(1+c.sharpen, v, -c.sharpen, softened(v, 16)), lambda*sigma*sigma/4/0.01
				}
				x = e.minimum(t, v, rho)
				noisy = x
				if c.noise == "null_space" {
					noisy = e.minimum(t, combine(1, v, math.Sqrt(next), e.draw(noise.Step, at)), rho)
				}
				u = combine(next/tau2, combine(1, u, 1, x), -next/tau2, z)
			}
			wantClose(t, e.solve(t, "ddiff", len(times), map[string]parameter.Value{
				"lambda": parameter.Number(lambda), "noise_std": parameter.Number(sigma), "t_start": parameter.Number(120), "sharpen": parameter.Number(c.sharpen),
				"noise": parameter.Word(c.noise),
			}), x)
		})
	}
}

// minimum returns argmin_x ‖y − A·x‖² + ρ·‖x − v‖².
func (e example) minimum(t *testing.T, v *mat.VecDense, rho float64) *mat.VecDense {
	t.Helper()
	n := v.Len()
	x, right, system := mat.NewVecDense(n, nil), mat.NewVecDense(n, nil), mat.NewDense(n, n, nil)
	right.MulVec(e.a.T(), e.y)
	right.AddScaledVec(right, rho, v)
	system.Mul(e.a.T(), e.a)
	for i := range n {
		system.Set(i, i, system.At(i, i)+rho)
	}
	var lu mat.LU
	lu.Factorize(system)
	must(t, lu.SolveVecTo(x, false, right))
	return x
}

// softened blurs a square image twice by the weights 1/4, 1/2, 1/4 along both axes. The border repeats.
func softened(x *mat.VecDense, side int) *mat.VecDense {
	for range 2 {
		for _, axis := range []func(i, j int) int{func(i, j int) int { return i*side + j }, func(i, j int) int { return j*side + i }} {
			out := mat.NewVecDense(x.Len(), nil)
			for i := range side {
				for j := range side {
					out.SetVec(axis(i, j), x.AtVec(axis(i, max(j-1, 0)))/4+x.AtVec(axis(i, j))/2+x.AtVec(axis(i, min(j+1, side-1)))/4)
				}
			}
			x = out
		}
	}
	return x
}

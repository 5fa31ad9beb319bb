package operator

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"

	"ddiff/internal/failure"
	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxruntime"
)

// ErrGradient: a gradient differs from finite differences by more than gradientTolerance.
var ErrGradient = failure.New(failure.Prior, "the gradient is wrong")

// gradientTolerance is the largest relative error that [Operator.CheckGradient] accepts. In
// float32, and at the kinks of clipping, correct gradients reach a few thousandths.
const gradientTolerance = 0.02

// GradientReport compares a gradient with central differences.
type GradientReport struct {
	// Error is the relative difference: the least over the steps h, the median over the directions.
	Error float64 `json:"error"`
	// Step is the h of Error, in units of an image value.
	Step float64 `json:"step"`
	// Directions is the number of directions.
	Directions int `json:"directions"`
}

// CheckGradient compares the gradient of A, as the graph gives it, with central differences at a
// fixed random image, draw and weighting of y. It returns ErrGradient for a wrong gradient, and
// [onnx.ErrNoGradient] for an operation without a rule.
func (o *Operator) CheckGradient(ctx context.Context, rt *onnxruntime.Runtime) (GradientReport, error) {
	f, err := NewGradient(rt, o)
	if err != nil {
		return GradientReport{}, err
	}
	defer f.Close()
	key := noise.NewKey(sha256.Sum256([]byte("gradient")))
	x, none := make([]float32, o.Image.Size()), make([]float32, o.MeasurementSize())
	noise.Normal(x, key, noise.Start, 0, 1)
	for i, v := range x {
		x[i] = float32(0.4 * math.Tanh(float64(v)))
	}
	draw, err := o.Encode(o.Draw(key))
	if err != nil {
		return GradientReport{}, err
	}
	r, err := CompareGradient(ctx, x, key, func(ctx context.Context, x, w []float32) (y, gx []float32, err error) {
		if w == nil {
			w = none
		}
		return f.Gradient(ctx, x, draw, w)
	})
	if err == nil && !(r.Error <= gradientTolerance) {
		err = fmt.Errorf("task %s: %w: it differs from finite differences by %.2g, at most %g is allowed", o.Task, ErrGradient, r.Error, gradientTolerance)
	}
	return r, err
}

// CompareGradient compares Jᵀ(x)·w with central differences of φ = ⟨w, A⟩ along random
// directions d of the key: ⟨Jᵀw, d⟩ with (φ(x+hd) − φ(x−hd))/2h. The weights w lie along the
// change of A, so that an error in any part of x counts and rounding does not.
//
// evaluate returns y = A(x) and gx = Jᵀ(x)·w in float32; gx is not used where w is nil. Sums are
// computed in float64.
func CompareGradient(ctx context.Context, x []float32, key noise.Key,
	evaluate func(ctx context.Context, x, w []float32) (y, gx []float32, err error),
) (GradientReport, error) {
	const directions = 5
	var all []GradientReport
	for i := range uint32(directions) {
		d, moved := make([]float32, len(x)), make([]float32, len(x))
		noise.Normal(d, key, noise.Operator, 10+i, 1)
		// difference is A(x+hd) − A(x−hd) over 2h.
		difference := func(h float64) ([]float32, error) {
			var at [2][]float32
			for k, step := range []float64{h, -h} {
				for j := range x {
					moved[j] = float32(float64(x[j]) + step*float64(d[j]))
				}
				y, _, err := evaluate(ctx, moved, nil)
				if err != nil {
					return nil, err
				}
				at[k] = slices.Clone(y)
			}
			for j := range at[0] {
				at[0][j] = float32((float64(at[0][j]) - float64(at[1][j])) / (2 * h))
			}
			return at[0], nil
		}
		w, err := difference(1e-2)
		if err != nil {
			return GradientReport{}, err
		}
		_, gx, err := evaluate(ctx, x, w)
		if err != nil {
			return GradientReport{}, err
		}
		got := dot(gx, d)
		best := GradientReport{Error: math.Inf(1), Directions: directions}
		for _, h := range []float64{3e-2, 1e-2, 3e-3, 1e-3, 3e-4} {
			change, err := difference(h)
			if err != nil {
				return GradientReport{}, err
			}
			want := dot(w, change)
			if e := math.Abs(got-want) / max(math.Abs(got), math.Abs(want), 1e-12); e < best.Error {
				best.Error, best.Step = e, h
			}
		}
		all = append(all, best)
	}
	slices.SortFunc(all, func(a, b GradientReport) int { return cmp.Compare(a.Error, b.Error) })
	return all[directions/2], nil
}

func dot(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

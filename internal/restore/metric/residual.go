package metric

import (
	"fmt"
	"math"

	"ddiff/internal/restore/raster"
)

// Version 2: mean((y - A(x))^2) minus the variance of the noise, sigma^2 without photons, over the
// observed entries of y, in squared units of y, without clipping.
func residual() Metric {
	return Metric{Name: NameResidual, Version: "2", Title: "residual", Decimals: 4, Better: CloserToZero, Main: true, Misfit: Residual}
}

// Residual compares a measurement y with the measurement ax = A(x) of a restoration x. It is about zero if they differ
// only by noise of the given mean variance, positive if the restoration does not fit the data, negative if it fits the
// noise. The caller removes entries that the operator does not observe from both. Errors are [ErrShape] and
// [raster.ErrNotFinite].
func Residual(y, ax []float32, variance float64) (float64, error) {
	if len(y) == 0 || len(y) != len(ax) {
		return 0, fmt.Errorf("residual: %d entries of y, %d of A(x): %w", len(y), len(ax), ErrShape)
	}
	sum := 0.0
	for i, v := range y {
		d := float64(v) - float64(ax[i])
		sum += d * d
	}
	r := sum/float64(len(y)) - variance
	if math.IsNaN(r) || math.IsInf(r, 0) {
		return 0, fmt.Errorf("residual of y, A(x) and variance %v: %w", variance, raster.ErrNotFinite)
	}
	return r, nil
}

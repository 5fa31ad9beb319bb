package operator_test

import (
	"math"
	"testing"

	"ddiff/restore/operator"
)

// TestNarrowGaussian: a kernel that is narrower than 8 standard deviations has the weights of scipy.ndimage.gaussian_filter(impulse, 3) on 9×9 samples, with the sum 1,
// so that the blur leaves contrast as it is.
func TestNarrowGaussian(t *testing.T) {
	t.Parallel()
	const side, centre = 64, 32
	op := operator.Build(t, operator.GaussianDeblur, map[string]float64{"size": 9 * 256 / side, "std": 3 * 256 / side}, operator.Shape{Channels: 1, Height: side, Width: side})
	f := operator.Forwards(t, op)
	x := make([]float32, side*side)
	x[centre*side+centre] = 1
	y, err := f.Apply(t.Context(), x, nil)
	must(t, err)
	weights := []float64{0.13593919, 0.13011086, 0.11538667, 0.09870131, 0.08783157, 0}
	for i, v := range weights {
		for j, w := range weights {
			if got := y[(centre+i)*side+centre-j]; math.Abs(float64(got)-v*w) > 1e-7 {
				t.Errorf("%d rows below and %d columns left of the impulse: %g, want %g", i, j, got, v*w)
			}
		}
	}
}

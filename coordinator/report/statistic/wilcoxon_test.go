package statistic

import (
	"math"
	"slices"
	"testing"
)

// TestMeansOfImages: the rank test gets one value per image, the mean of its defined values.
func TestMeansOfImages(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	got := imageMeans([]float64{1, nan, 5, 2, 9, nan, 6}, []uint64{7, 7, 8, 7, 8, 9, 7})
	if want := []float64{3, 7}; !slices.Equal(got, want) {
		t.Errorf("means %g, want %g", got, want)
	}
}

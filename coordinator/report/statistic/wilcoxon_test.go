package statistic

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// TestUnreachable: 8 images give p of at least 2/2^8, times 30 tests 0.234; 11 images, 30·2/2^11 = 0.029, are the first.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tests, n int
		want     string
	}{
		{30, 8, "No p value can be below 0.23 here (n = 8, tests: 30)"}, {30, 8, "at least 11 images"}, {30, 10, "at least 11 images"}, {30, 11, ""},
		{1, 5, "at least 6 images"}, {1, 6, ""}, {45, 2, "below 1 here"}, {0, 0, ""},
	} {
		if got := UnreachableNote(c.tests, c.n); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%d tests of %d images: %q, want %q", c.tests, c.n, got, c.want)
		}
	}
}

// TestMeansOfImages: the rank test gets one value per image, the mean of its defined values.
func TestMeansOfImages(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	got := imageMeans([]float64{1, nan, 5, 2, 9, nan, 6}, []uint64{7, 7, 8, 7, 8, 9, 7})
	if want := []float64{3, 7}; !slices.Equal(got, want) {
		t.Errorf("means %g, want %g", got, want)
	}
}

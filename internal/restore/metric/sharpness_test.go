package metric

import (
	"math"
	"testing"

	"ddiff/internal/restore/raster"
)

func TestSharpnessKnown(t *testing.T) {
	t.Parallel()
	// steps returns an image of three rows and channels that differ in their levels, with steps of the given height between its columns and its rows.
	steps := func(height float32) *raster.Image {
		img := raster.New(3, 3, 4)
		for i := range img.Pix {
			img.Pix[i] = float32(i/12)*0.1 + height*float32((i%4)%2+(i/4%3)%2)
		}
		return img
	}
	tests := []struct {
		name            string
		truth, restored *raster.Image
		want            float64
	}{
		{"itself", steps(0.2), steps(0.2), 0},
		{"twice the steps", steps(0.2), steps(0.4), 20 * math.Log10(2)},
		{"a third of the steps", steps(0.3), steps(0.1), -20 * math.Log10(3)},
		{"two flat images", constant(1, 5, 4, 0.5), constant(1, 5, 4, -0.2), 0},
		{"a flat truth", constant(3, 3, 4, 1), steps(0.2), 10 * math.Log10(1+0.01*(3*3*3+3*2*4)/(3*3*4)/1e-8)},
		{"clipped", constant(1, 5, 4, 1), constant(1, 5, 4, 3), 0},
	}
	for _, tt := range tests {
		got, err := compareSharpness(tt.truth, tt.restored)
		if err != nil || !(math.Abs(got-tt.want) <= 1e-4) {
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
}

package metric

import (
	"math"
	"testing"
)

func TestContrast(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values   []float32
		channels int
		want     float64
	}{
		"no values":                        {nil, 3, 0},
		"fewer values than channels":       {[]float32{1, -1}, 3, 0},
		"a flat image of another colour":   {[]float32{1, 1, -1, -1, 0.5, 0.5}, 3, 0},
		"one channel":                      {[]float32{1, 3, 5, 7}, 1, math.Sqrt(5)},
		"a flat channel beside another":    {[]float32{4, 4, 4, 4, 1, 3, 5, 7}, 2, math.Sqrt(2.5)},
		"channels with means of their own": {[]float32{-1, 1, 9, 13, 0, 0}, 3, math.Sqrt(10.0 / 6)},
	} {
		if got := Contrast(c.values, c.channels); !(math.Abs(got-c.want) <= 1e-12) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

package metric

import "math"

// Contrast returns the standard deviation of the values of an image, one channel after another, about the mean of their channel. It
// is 0 for a flat image, whatever its colour.
func Contrast(values []float32, channels int) float64 {
	n := len(values) / max(1, channels)
	if n == 0 {
		return 0
	}
	sum := 0.0
	for c := range channels {
		plane := values[c*n : (c+1)*n]
		sum += squares(plane, total(plane)/float64(n))
	}
	return math.Sqrt(sum / float64(n*channels))
}

package statistic

import "math"

// Mean estimates the mean of values, one per image. All of them are finite.
func Mean(values []float64) Estimate {
	e := Estimate{N: len(values), Mean: Average(values)}
	if e.N < 2 {
		return e
	}
	var squares float64
	for _, v := range values {
		squares += (v - e.Mean) * (v - e.Mean)
	}
	n := float64(e.N)
	half := studentQuantile(e.N-1) * math.Sqrt(squares/(n-1)/n)
	e.HalfWidth = &half
	return e
}

// Average is the mean of values, 0 without any.
func Average(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}

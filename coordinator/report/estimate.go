package report

import "math"

// Estimate is a mean over images with its uncertainty.
type Estimate struct {
	// N is the number of images for which the figure is defined. Zero means no figure.
	N int `json:"n"`
	// Mean is the arithmetic mean.
	Mean float64 `json:"mean"`
	// HalfWidth is half the width of the 95 % confidence interval of the mean (Student t
	// with N-1 degrees of freedom). Nil for fewer than two images.
	HalfWidth *float64 `json:"half_width,omitempty"`
}

// estimate leaves out the values that are NaN.
func estimate(values []float64) Estimate {
	var e Estimate
	var sum float64
	for _, v := range values {
		if !math.IsNaN(v) {
			e.N++
			sum += v
		}
	}
	if e.N == 0 {
		return e
	}
	n := float64(e.N)
	e.Mean = sum / n
	if e.N < 2 {
		return e
	}
	var squares float64
	for _, v := range values {
		if !math.IsNaN(v) {
			squares += (v - e.Mean) * (v - e.Mean)
		}
	}
	half := studentQuantile(e.N-1) * math.Sqrt(squares/(n-1)/n)
	e.HalfWidth = &half
	return e
}

// defined reports whether a figure is there and finite.
func defined(v *float64) bool {
	return v != nil && !math.IsNaN(*v) && !math.IsInf(*v, 0)
}

// figure is the value, or NaN when it is not defined.
func figure(v *float64) float64 {
	if !defined(v) {
		return math.NaN()
	}
	return *v
}

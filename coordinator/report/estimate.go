package report

import "math"

// Estimate is a mean over images with its uncertainty.
type Estimate struct {
	// N is the number of images for which the figure is defined. Zero means no figure.
	N int `json:"n"`
	// Mean is the arithmetic mean.
	Mean float64 `json:"mean"`
	// HalfWidth is half the width of the 95 % confidence interval of the mean (Student t with N-1 degrees of freedom).
	// Nil for fewer than two images.
	HalfWidth *float64 `json:"half_width,omitempty"`
}

// moments estimates a mean in two passes over the values: add all of them, then deviate. NaN values do not count.
type moments struct {
	n            int
	sum, squares float64
}

func (m *moments) add(v float64) {
	if defined(v) {
		m.n++
		m.sum += v
	}
}

// deviate adds the squared deviation from the mean of all added values.
func (m *moments) deviate(v float64) {
	if defined(v) {
		d := v - m.sum/float64(m.n)
		m.squares += d * d
	}
}

func (m *moments) estimate() Estimate {
	e := Estimate{N: m.n}
	if m.n == 0 {
		return e
	}
	n := float64(m.n)
	e.Mean = m.sum / n
	if m.n > 1 {
		half := studentQuantile(m.n-1) * math.Sqrt(m.squares/(n-1)/n)
		e.HalfWidth = &half
	}
	return e
}

// estimate ignores NaN values.
func estimate(values []float64) Estimate {
	var m moments
	for _, v := range values {
		m.add(v)
	}
	for _, v := range values {
		m.deviate(v)
	}
	return m.estimate()
}

// defined reports whether a figure exists. Undefined figures are NaN.
func defined(v float64) bool { return !math.IsNaN(v) }

// figure returns the value, or NaN if the value is missing or infinite.
func figure(v *float64) float64 {
	if v == nil || math.IsInf(*v, 0) {
		return math.NaN()
	}
	return *v
}

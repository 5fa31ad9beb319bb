package tune

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Estimate is a mean over images.
type Estimate struct {
	// N is the number of images.
	N    int     `json:"n"`
	Mean float64 `json:"mean"`
	// HalfWidth is half the width of the confidence interval by Student's t with N-1 degrees of freedom. Nil for fewer than
	// two images.
	HalfWidth *float64 `json:"half_width,omitempty"`
}

// Confidence is the confidence of all intervals.
const Confidence = 0.95

// Mean estimates the mean of values, one per image. All of them are finite.
func Mean(values []float64) Estimate {
	e := Estimate{N: len(values), Mean: average(values)}
	if e.N < 2 {
		return e
	}
	var squares float64
	for _, v := range values {
		squares += (v - e.Mean) * (v - e.Mean)
	}
	n := float64(e.N)
	quantile := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile((1 + Confidence) / 2)
	half := quantile * math.Sqrt(squares/(n-1)/n)
	e.HalfWidth = &half
	return e
}

// average is the mean of values, 0 without any.
func average(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}

// below reports whether the whole interval is below zero.
func (e Estimate) below() bool { return e.HalfWidth != nil && e.Mean+*e.HalfWidth < 0 }

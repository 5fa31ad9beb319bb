// Package statistic has the intervals and tests of reports and tunings: numbers in, numbers out. It owns means with Student's 95 %
// intervals over images ([Mean], [ClusterMean]), Wilcoxon's signed-rank test with Holm's adjustment, and the calibration of
// several runs. NaN is an undefined figure. A further interval or test is one file here, with reference values in testdata.
package statistic

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Estimate is a mean over measurements with its uncertainty over images.
type Estimate struct {
	// N is the number of images for which the figure is defined. Zero means no figure.
	N int `json:"n"`
	// Measurements is the number of averaged measurements, if it is not N: several of one image.
	Measurements int `json:"measurements,omitempty"`
	// Mean is the arithmetic mean over the measurements.
	Mean float64 `json:"mean"`
	// HalfWidth is half the width of the 95 % confidence interval of the mean. All measurements of one image are one
	// cluster: the standard error is the cluster-robust one with the factor N/(N-1), the quantile Student's with N-1
	// degrees of freedom. With one measurement per image this is the usual t interval. Nil for fewer than two images.
	HalfWidth *float64 `json:"half_width,omitempty"`
}

// cluster has the mean of the n defined values of one image.
type cluster struct {
	n    int
	mean float64
}

// clusters returns the defined values by image, in the order of their first values.
func clusters(values []float64, images []uint64) []cluster {
	at := make(map[uint64]int)
	var out []cluster
	for i, v := range values {
		if !Defined(v) {
			continue
		}
		k, known := at[images[i]]
		if !known {
			k = len(out)
			at[images[i]] = k
			out = append(out, cluster{})
		}
		c := &out[k]
		c.n++
		c.mean += (v - c.mean) / float64(c.n)
	}
	return out
}

// ClusterMean is the estimate of one figure, with the image of each value. It ignores NaN values.
func ClusterMean(values []float64, images []uint64) Estimate {
	all := clusters(values, images)
	if len(all) == 0 {
		return Estimate{}
	}
	n, sum := 0, 0.0
	for _, c := range all {
		n += c.n
		sum += float64(c.n) * c.mean
	}
	e := Estimate{N: len(all), Mean: sum / float64(n)}
	if n != e.N {
		e.Measurements = n
	}
	if e.N > 1 {
		squares, g := 0.0, float64(e.N)
		for _, c := range all {
			d := float64(c.n) * (c.mean - e.Mean)
			squares += d * d
		}
		half := studentQuantile(e.N-1) * math.Sqrt(g/(g-1)*squares) / float64(n)
		e.HalfWidth = &half
	}
	return e
}

// Mean is the estimate of one figure with a value per image. All of them are finite.
func Mean(values []float64) Estimate {
	images := make([]uint64, len(values))
	for i := range images {
		images[i] = uint64(i)
	}
	return ClusterMean(values, images)
}

// Average is the mean of values, 0 without any.
func Average(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}

// studentQuantile is the 0.975 quantile of Student's t: the factor of a two-sided 95 % interval.
func studentQuantile(df int) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(df)}.Quantile(0.975)
}

// Defined reports whether a figure exists. Undefined figures are NaN.
func Defined(v float64) bool { return !math.IsNaN(v) }

// Optional returns nil for an undefined figure.
func Optional(v float64) *float64 {
	if !Defined(v) {
		return nil
	}
	return &v
}

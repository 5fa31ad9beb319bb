// Package statistic has the intervals and tests of reports and tunings: numbers in, numbers out. It owns means with Student's 95 %
// intervals over images ([Mean], [ClusterMean], [Moments]), Wilcoxon's signed-rank test with Holm's adjustment, and the calibration of
// several runs. NaN is an undefined figure. A further interval or test is one file here, with reference values in testdata.
package statistic

import (
	"math"
	"slices"

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

// Moments estimates the means of figures in two passes over the measurements: count all of them, then deviate. NaN
// values do not count.
type Moments struct {
	n       []int
	sum     []float64
	squares []float64
	images  []int
	seen    []uint64       // the image of each counted measurement, until repeated is built
	shared  map[uint64]int // index in clusters of each image with several measurements
	cluster []cluster
}

// cluster sums the deviations of the measurements of one image.
type cluster struct {
	n   []int
	sum []float64
}

// Count adds the figures of a measurement to the means.
func (m *Moments) Count(image uint64, values []float64) {
	if m.n == nil {
		m.n, m.sum = make([]int, len(values)), make([]float64, len(values))
		m.images, m.squares = make([]int, len(values)), make([]float64, len(values))
	}
	m.seen = append(m.seen, image)
	for k, v := range values {
		if Defined(v) {
			m.n[k]++
			m.sum[k] += v
		}
	}
}

// Group finds the images with several measurements. It follows the last count.
func (m *Moments) Group() {
	slices.Sort(m.seen)
	m.shared = make(map[uint64]int)
	for i := 1; i < len(m.seen); i++ {
		if _, known := m.shared[m.seen[i]]; !known && m.seen[i] == m.seen[i-1] {
			m.shared[m.seen[i]] = len(m.cluster)
			m.cluster = append(m.cluster, cluster{make([]int, len(m.n)), make([]float64, len(m.n))})
		}
	}
	m.seen = nil
}

// Deviate adds the deviations of a counted measurement from the means.
func (m *Moments) Deviate(image uint64, values []float64) {
	at, shared := m.shared[image]
	for k, v := range values {
		if !Defined(v) {
			continue
		}
		d := v - m.sum[k]/float64(m.n[k])
		if shared {
			m.cluster[at].n[k]++
			m.cluster[at].sum[k] += d
		} else {
			m.images[k]++
			m.squares[k] += d * d
		}
	}
}

// Estimate returns the estimate of a figure. It follows the last deviate.
func (m *Moments) Estimate(k int) Estimate {
	if k >= len(m.n) { // without any measurement
		return Estimate{}
	}
	images, squares := m.images[k], m.squares[k]
	for i := range m.cluster {
		if c := &m.cluster[i]; c.n[k] > 0 {
			images++
			squares += c.sum[k] * c.sum[k]
		}
	}
	e := Estimate{N: images}
	if m.n[k] == 0 {
		return e
	}
	n, g := float64(m.n[k]), float64(images)
	e.Mean = m.sum[k] / n
	if m.n[k] != images {
		e.Measurements = m.n[k]
	}
	if images > 1 {
		half := studentQuantile(images-1) * math.Sqrt(g/(g-1)*squares) / n
		e.HalfWidth = &half
	}
	return e
}

// ClusterMean is the estimate of one figure, with the image of each value. It ignores NaN values.
func ClusterMean(values []float64, images []uint64) Estimate {
	var m Moments
	row := func(v float64) []float64 { return []float64{v} }
	for i, v := range values {
		m.Count(images[i], row(v))
	}
	m.Group()
	for i, v := range values {
		m.Deviate(images[i], row(v))
	}
	return m.Estimate(0)
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

// Value returns the value, or NaN if the value is missing or infinite.
func Value(v *float64) float64 {
	if v == nil || math.IsInf(*v, 0) {
		return math.NaN()
	}
	return *v
}

// Optional returns nil for an undefined figure.
func Optional(v float64) *float64 {
	if !Defined(v) {
		return nil
	}
	return &v
}

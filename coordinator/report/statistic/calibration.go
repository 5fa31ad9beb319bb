package statistic

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Calibration tells whether the deviation between the runs of a measurement predicts the error of their mean, over the
// samples of all compared measurements of a row. Samples are on [0, 1].
//
// Let m and s be mean and standard deviation (with n-1) of a sample over n runs, and t the truth. If the runs are
// independent draws from the distribution of the truth given the measurement, t-m has mean 0 and variance
// s²(1+1/n) on average: the deviation is d = s sqrt(1+1/n). For a normal distribution (t-m)/d has Student's distribution with
// n-1 degrees of freedom, so that the intervals m ± q d with its quantiles q cover 68.27 % and 95.45 % for any n.
type Calibration struct {
	// Samples is the number of samples: pixels times channels, of all measurements.
	Samples int `json:"samples"`
	// Coverage1 and Coverage2 are the shares of the truth within the intervals of one and two standard deviations, which are
	// 0.6827 and 0.9545 for calibrated runs.
	Coverage1 float64 `json:"coverage_1"`
	Coverage2 float64 `json:"coverage_2"`
	// ErrorRMS and DeviationRMS are root mean squares of t-m and of d; Ratio is their quotient, 1 for calibrated runs, above
	// 1 if the runs differ less than they err. Nil without any deviation.
	ErrorRMS     float64  `json:"error_rms"`
	DeviationRMS float64  `json:"deviation_rms"`
	Ratio        *float64 `json:"ratio,omitempty"`
	// Correlation is Pearson's coefficient of |t-m| and d over all samples. Nil if one of them is constant. It is below 1 also
	// for calibrated runs: a deviation predicts the size of an error, not the error.
	Correlation *float64 `json:"correlation,omitempty"`
	// Bins divide the samples by d. With few runs d itself is uncertain, which flattens the errors over the bins.
	Bins []CalibrationBin `json:"bins"`
}

// CalibrationBin has the samples with From <= d < To; To is 0 for the last one.
type CalibrationBin struct {
	From         float64 `json:"from"`
	To           float64 `json:"to,omitempty"`
	Samples      int     `json:"samples"`
	DeviationRMS float64 `json:"deviation_rms"`
	ErrorRMS     float64 `json:"error_rms"`
}

// binEdges are the upper edges of the bins but the last, in units of d: from half a grey level of 255, doubling.
var binEdges = [...]float64{0.5 / 255, 1. / 255, 2. / 255, 4. / 255, 8. / 255, 16. / 255, 32. / 255, 64. / 255}

// The shares of a normal distribution within one and two standard deviations.
var within = [2]float64{math.Erf(1 / math.Sqrt2), math.Erf(2 / math.Sqrt2)}

// Calibrator accumulates the samples of a row. Its size does not depend on their number.
type Calibrator struct {
	samples                                   int
	covered                                   [2]int
	sumError, sumDeviation                    float64
	squaresError, squaresDeviation, crossings float64
	bins                                      [len(binEdges) + 1]struct {
		samples          int
		deviation, error float64
	}
}

// Spread is the mean and the deviation of the runs of one measurement, by sample, in one pass.
type Spread struct {
	Runs          int
	Mean, squares []float64
}

// Add adds the samples of a run, on [0, 1].
func (s *Spread) Add(samples []float64) {
	if s.Mean == nil {
		s.Mean, s.squares = make([]float64, len(samples)), make([]float64, len(samples))
	}
	s.Runs++
	for i, v := range samples {
		d := v - s.Mean[i]
		s.Mean[i] += d / float64(s.Runs)
		s.squares[i] += d * (v - s.Mean[i])
	}
}

// Deviation returns the standard deviation of a sample over the runs, of which there are two at least.
func (s *Spread) Deviation(i int) float64 { return math.Sqrt(s.squares[i] / float64(s.Runs-1)) }

// Add compares the runs of one measurement with its truth.
func (c *Calibrator) Add(s *Spread, truth []float64) {
	n := float64(s.Runs)
	student := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}
	var quantiles [2]float64
	for k, share := range within {
		quantiles[k] = student.Quantile((1 + share) / 2)
	}
	widen := math.Sqrt(1 + 1/n)
	for i, t := range truth {
		e, d := math.Abs(t-s.Mean[i]), s.Deviation(i)*widen
		for k, q := range quantiles {
			if e <= q*d {
				c.covered[k]++
			}
		}
		c.samples++
		c.sumError += e
		c.sumDeviation += d
		c.squaresError += e * e
		c.squaresDeviation += d * d
		c.crossings += e * d
		at := 0
		for at < len(binEdges) && d >= binEdges[at] {
			at++
		}
		b := &c.bins[at]
		b.samples++
		b.deviation += d * d
		b.error += e * e
	}
}

// Result returns the calibration, nil without samples.
func (c *Calibrator) Result() *Calibration {
	if c.samples == 0 {
		return nil
	}
	n := float64(c.samples)
	out := &Calibration{
		Samples: c.samples, Coverage1: float64(c.covered[0]) / n, Coverage2: float64(c.covered[1]) / n,
		ErrorRMS: math.Sqrt(c.squaresError / n), DeviationRMS: math.Sqrt(c.squaresDeviation / n), Bins: []CalibrationBin{},
	}
	if out.DeviationRMS > 0 {
		ratio := out.ErrorRMS / out.DeviationRMS
		out.Ratio = &ratio
	}
	varError := c.squaresError - c.sumError*c.sumError/n
	varDeviation := c.squaresDeviation - c.sumDeviation*c.sumDeviation/n
	// Rounding leaves a remainder where all values are equal.
	if varError > 1e-12*c.squaresError && varDeviation > 1e-12*c.squaresDeviation {
		r := (c.crossings - c.sumError*c.sumDeviation/n) / math.Sqrt(varError*varDeviation)
		out.Correlation = &r
	}
	for i := range c.bins {
		b := &c.bins[i]
		if b.samples == 0 {
			continue
		}
		bin := CalibrationBin{
			Samples: b.samples, DeviationRMS: math.Sqrt(b.deviation / float64(b.samples)), ErrorRMS: math.Sqrt(b.error / float64(b.samples)),
		}
		if i > 0 {
			bin.From = binEdges[i-1]
		}
		if i < len(binEdges) {
			bin.To = binEdges[i]
		}
		out.Bins = append(out.Bins, bin)
	}
	return out
}

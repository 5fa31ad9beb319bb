package statistic

import "math"

// Calibration tells whether the deviation between the runs of a measurement predicts the error of their mean, over the
// samples of all compared measurements of a row. Samples are on [0, 1].
//
// Let m and s be mean and standard deviation (with n-1) of a sample over n runs, and t the truth. If the runs are
// independent draws from the distribution of the truth given the measurement, t-m has mean 0 and variance
// s²(1+1/n) on average: the deviation is d = s sqrt(1+1/n).
type Calibration struct {
	// Samples is the number of samples: pixels times channels, of all measurements.
	Samples int `json:"samples"`
	// ErrorRMS and DeviationRMS are root mean squares of t-m and of d; Ratio is their quotient, 1 for calibrated runs, above
	// 1 if the runs differ less than they err. Nil without any deviation.
	ErrorRMS     float64  `json:"error_rms"`
	DeviationRMS float64  `json:"deviation_rms"`
	Ratio        *float64 `json:"ratio,omitempty"`
	// Correlation is Pearson's coefficient of |t-m| and d over all samples. Nil if one of them is constant. It is below 1 also
	// for calibrated runs: a deviation predicts the size of an error, not the error.
	Correlation *float64 `json:"correlation,omitempty"`
}

// Calibrator accumulates the samples of a row. Its size does not depend on their number.
type Calibrator struct {
	samples                                   int
	sumError, sumDeviation                    float64
	squaresError, squaresDeviation, crossings float64
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
	widen := math.Sqrt(1 + 1/float64(s.Runs))
	for i, t := range truth {
		e, d := math.Abs(t-s.Mean[i]), s.Deviation(i)*widen
		c.samples++
		c.sumError += e
		c.sumDeviation += d
		c.squaresError += e * e
		c.squaresDeviation += d * d
		c.crossings += e * d
	}
}

// Result returns the calibration, nil without samples.
func (c *Calibrator) Result() *Calibration {
	if c.samples == 0 {
		return nil
	}
	n := float64(c.samples)
	out := &Calibration{Samples: c.samples, ErrorRMS: math.Sqrt(c.squaresError / n), DeviationRMS: math.Sqrt(c.squaresDeviation / n)}
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
	return out
}

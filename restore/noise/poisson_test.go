package noise

import (
	"fmt"
	"math"
	"testing"
)

// TestPoissonDistribution compares 400,000 counts for each mean with the distribution: mean and variance within 5 standard
// errors, and the frequencies by the chi-square statistic, within 5 standard deviations of its expectation. The means lie on both sides
// of the border between inversion and rejection.
func TestPoissonDistribution(t *testing.T) {
	t.Parallel()
	const n = 400_000
	for at, mean := range []float64{0.01, 0.3, 1, 4.5, 9.999, 10, 11.5, 30, 100, 1234.5, 65_000} {
		t.Run(fmt.Sprint(mean), func(t *testing.T) {
			t.Parallel()
			key := Key{uint32(at), 17, 4}
			sum, square := 0.0, 0.0
			found := map[float64]int{}
			for i := range uint32(n) {
				k := Poisson(mean, key, Photons, i)
				if k < 0 || k != math.Trunc(k) {
					t.Fatalf("count %v of element %d is not a count", k, i)
				}
				sum += k - mean
				square += (k - mean) * (k - mean)
				found[k]++
			}
			if z := sum / math.Sqrt(n*mean); !(math.Abs(z) <= 5) {
				t.Errorf("mean %v, want %v: %.1f standard errors", mean+sum/n, mean, z)
			}
			// The fourth central moment of the distribution is mean + 3·mean².
			spread := math.Sqrt((mean + 2*mean*mean) / n)
			if z := (square/n - mean) / spread; !(math.Abs(z) <= 5) {
				t.Errorf("variance %v, want %v: %.1f standard errors", square/n, mean, z)
			}
			chi, bins := chiSquare(found, n, mean)
			if z := (chi - bins) / math.Sqrt(2*bins); !(math.Abs(z) <= 5) {
				t.Errorf("chi-square %.1f for %v degrees of freedom: %.1f standard deviations", chi, bins, z)
			}
		})
	}
}

// chiSquare compares frequencies with the distribution, in bins of an expectation of at least 20. It returns the statistic and its degrees
// of freedom. The probabilities are computed apart from the sampler, with the logarithm of the gamma function.
func chiSquare(found map[float64]int, n, mean float64) (chi, freedom float64) {
	bins, left, counted, want := -1.0, n, n, 0.0
	have := 0.0
	end := mean + 12*math.Sqrt(mean) + 20
	for k := max(0, math.Floor(mean-12*math.Sqrt(mean)-20)); k <= end; k++ {
		gamma, _ := math.Lgamma(k + 1)
		want += n * math.Exp(k*math.Log(mean)-mean-gamma)
		have += float64(found[k])
		if want < 20 || left-want < 20 {
			continue
		}
		chi += (have - want) * (have - want) / want
		left, counted, bins, want, have = left-want, counted-have, bins+1, 0, 0
	}
	chi += (counted - left) * (counted - left) / left // the rest
	return chi, bins + 1
}

// TestPoissonVectors: the counts never change.
func TestPoissonVectors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mean float64
		want [6]float64
	}{
		{-1, [6]float64{}}, {0, [6]float64{}}, {math.NaN(), [6]float64{}},
	} {
		var got [6]float64
		for i := range got {
			got[i] = Poisson(c.mean, Key{1, 2, 3}, Photons, uint32(i))
		}
		if got != c.want {
			t.Errorf("mean %v: %v, want %v", c.mean, got, c.want)
		}
	}
}

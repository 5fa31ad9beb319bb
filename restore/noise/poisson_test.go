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

// TestPoissonVectors: the counts never change. The means lie on both sides of the border between inversion and rejection.
func TestPoissonVectors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mean float64
		want [6]float64
	}{
		{-1, [6]float64{}}, {0, [6]float64{}}, {math.NaN(), [6]float64{}},
		{0.3, [6]float64{0, 0, 0, 0, 1, 0}},
		{4.5, [6]float64{4, 2, 3, 2, 8, 4}},
		{9.999, [6]float64{10, 7, 8, 6, 15, 10}},
		{10, [6]float64{12, 13, 8, 4, 17, 6}},
		{30, [6]float64{30, 24, 27, 20, 42, 28}},
		{1234.5, [6]float64{1232, 1196, 1217, 1172, 1315, 1233}},
		{1e6, [6]float64{999943, 998903, 999497, 998215, 1002303, 999959}},
		{1e9, [6]float64{999998191, 999965322, 999984087, 999943558, 1000072850, 999998691}},
		{MaxMean, [6]float64{9999994281, 9999890339, 9999949680, 9999821515, 10000230373, 9999995859}},
	} {
		var got [6]float64
		for i := range got {
			got[i] = Poisson(c.mean, Key{1, 2, 3}, Photons, uint32(i))
		}
		if got != c.want {
			t.Errorf("mean %v: %v, want %v", c.mean, got, c.want)
		}
	}
	if a, b := Poisson(30, Key{1, 2, 3}, Photons, 7), Poisson(30, Key{1, 2, 4}, Photons, 7); a == b {
		t.Errorf("two keys have the count %v", a)
	}
}

// TestPoissonOfLargeMeans: mean and variance of 20,000 counts, within 5 standard errors.
func TestPoissonOfLargeMeans(t *testing.T) {
	t.Parallel()
	const n = 20_000
	for at, mean := range []float64{1e6, 1e9, MaxMean} {
		sum, square := 0.0, 0.0
		for i := range uint32(n) {
			d := (Poisson(mean, Key{uint32(at), 3, 5}, Photons, i) - mean) / math.Sqrt(mean)
			sum += d
			square += d * d
		}
		if z := sum / math.Sqrt(n); !(math.Abs(z) <= 5) {
			t.Errorf("mean %g: the sum is %.1f standard errors off", mean, z)
		}
		if z := (square/n - 1) / math.Sqrt(2.0/n); !(math.Abs(z) <= 5) {
			t.Errorf("mean %g: the variance is %.1f standard errors off", mean, z)
		}
	}
}

// TestPoissonHat: the hat of the rejection lies above the distribution, and what is accepted without a comparison lies below it, so that the counts
// have the distribution exactly.
func TestPoissonHat(t *testing.T) {
	t.Parallel()
	for _, mean := range []float64{10, 10.3, 11.5, 15, 20, 30, 60, 100, 1000, 1e5, 1e7} {
		h := newHat(mean)
		for n := range 20_000 {
			us := (float64(n) + 0.5) / 40_000
			for _, u := range []float64{us - 0.5, 0.5 - us} {
				k := h.count(u)
				if k < 0 {
					continue
				}
				ratio := math.Exp(logPoisson(k, mean)) * h.width(us) / h.alpha
				if ratio > 1 {
					t.Fatalf("mean %v, u %v: %v times the hat", mean, u, ratio)
				}
				if us >= sureWidth && ratio < h.sure || us < tailWidth && ratio > us {
					t.Fatalf("mean %v, u %v: %v times the hat, outside of the limits", mean, u, ratio)
				}
			}
		}
	}
}

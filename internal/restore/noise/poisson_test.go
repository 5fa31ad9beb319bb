package noise

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
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

// TestPoissonDigests: 100,000 counts of each mean never change. They include the rare ones of the tails, and the ones near the limit of
// the rejection.
func TestPoissonDigests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mean   float64
		golden string
	}{{0.3, "596b8614b7e287ae"}, {9.999, "975cc84014fb00ae"}, {10, "777b1271d893587d"}, {20, "0771661dc71ffeb1"}, {400, "a023f99081e3528f"}, {1e6, "5e6879b828dabb11"}} {
		h := sha256.New()
		for i := range uint32(100_000) {
			_ = binary.Write(h, binary.LittleEndian, Poisson(c.mean, Key{1, 2, 3}, Photons, i))
		}
		if got := hex.EncodeToString(h.Sum(nil))[:16]; got != c.golden {
			t.Errorf("mean %v: digest %s, want %s: the meaning of seeds has changed", c.mean, got, c.golden)
		}
	}
}

// TestFractionIsInside: a number is never 0 or 1. The logarithm and the quotients of the rejection need that.
func TestFractionIsInside(t *testing.T) {
	t.Parallel()
	const all = 1<<32 - 1
	if got := fraction(0, 0); got != 0x1p-53 {
		t.Errorf("least number %v, want 2⁻⁵³", got)
	}
	if got := fraction(all, all); got != 1-0x1p-53 {
		t.Errorf("largest number %v, want 1 − 2⁻⁵³", got)
	}
}

// TestInvertPoisson: the count is the least one whose distribution function reaches the number, and the sum ends for numbers next to 1.
func TestInvertPoisson(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ mean, u, want float64 }{
		{math.Ln2, math.Exp(-math.Ln2), 0}, {math.Ln2, 0.51, 1}, {2, math.Exp(-2), 0}, {2, 0.135, 0}, {2, 0.136, 1},
	} {
		if got := invertPoisson(c.mean, c.u); got != c.want {
			t.Errorf("mean %v, number %v: count %v, want %v", c.mean, c.u, got, c.want)
		}
	}
	for _, mean := range []float64{1e-9, 0.01, 0.3, 1, 2.5, 4.5, 7, 9.999} {
		for n := range 64 {
			// The probability of counts from mean + 60 on is below 2⁻⁶⁰ here.
			if k := invertPoisson(mean, 1-float64(n+1)*0x1p-53); !(k >= mean && k < mean+60) {
				t.Fatalf("mean %v, the number %d below 1: count %v", mean, n+1, k)
			}
		}
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

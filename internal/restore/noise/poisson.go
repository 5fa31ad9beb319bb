package noise

import "math"

// MaxMean is the largest mean of a Poisson distribution.
const MaxMean = 1e10

// smallMean is the mean below which counts are drawn by inversion.
const smallMean = 10

// Poisson returns number i of the stream (key, purpose): a count of the Poisson distribution with the given mean, from 0 to MaxMean. It depends
// on the mean and on i only. A negative mean counts as 0.
//
// Below a mean of 10 the count is the inverse of the distribution function at a number of 52 bits. From 10 on it is drawn by transformed
// rejection (PTRS; W. Hörmann: "The transformed rejection method for generating Poisson random variables", Insurance: Mathematics
// and Economics 12, 1993). The centre of the hat is mean + 0.445, that of PTRD in the same publication: with that of PTRS, mean + 0.43, the probabilities
// exceed the hat by up to 0.5 % at small means. Attempt k reads block (k, i) of the stream.
func Poisson(mean float64, key Key, purpose Purpose, i uint32) float64 {
	switch {
	case !(mean > 0):
		return 0
	case mean < smallMean:
		u, _ := uniforms(key, purpose, 0, i)
		return invertPoisson(mean, u)
	}
	h := newHat(mean)
	for attempt := uint32(0); ; attempt++ {
		u, v := uniforms(key, purpose, attempt, i)
		u -= 0.5
		us := 0.5 - math.Abs(u)
		k := h.count(u)
		if us >= sureWidth && v <= h.sure {
			return k
		}
		if k < 0 || us < tailWidth && v > us {
			continue
		}
		if math.Log(v*h.alpha/h.width(us)) <= logPoisson(k, mean) {
			return k
		}
	}
}

// From sureWidth on, a number below hat.sure is accepted. Below tailWidth, one above the distance from the end is rejected.
const (
	sureWidth = 0.07
	tailWidth = 0.013
)

// hat is the distribution above that of the counts, with the constants of the publication.
type hat struct{ mean, a, b, alpha, sure float64 }

func newHat(mean float64) hat {
	b := 0.931 + float64(2.53*math.Sqrt(mean))
	return hat{mean: mean, b: b, a: float64(0.02483*b) - 0.059, alpha: 1.1239 + 1.1328/(b-3.4), sure: 0.9277 - 3.6224/(b-2)}
}

// count is the count of a number u from −1/2 to 1/2.
func (h hat) count(u float64) float64 {
	us := 0.5 - math.Abs(u)
	return math.Floor(float64((2*h.a/us+h.b)*u) + h.mean + 0.445)
}

// width is the derivative of the unrounded count, for the distance us of u from the nearer end.
func (h hat) width(us float64) float64 { return h.a/float64(us*us) + h.b }

// uniforms returns two numbers in (0, 1) with 52 bits.
func uniforms(key Key, purpose Purpose, step, i uint32) (u, v float64) {
	a, b, c, d := block(key, purpose, step, i)
	return fraction(a, b), fraction(c, d)
}

// fraction maps 52 of 64 bits to the centres of 2⁵² intervals of (0, 1).
func fraction(hi, lo uint32) float64 {
	return (float64(uint64(hi)<<20|uint64(lo)>>12) + 0.5) / (1 << 52)
}

// invertPoisson returns the least count whose distribution function reaches u. The sum ends at counts too rare for a number of 52 bits.
func invertPoisson(mean, u float64) float64 {
	k, p := 0.0, math.Exp(-mean)
	for u > p {
		u -= p
		k++
		if p *= mean / k; k > mean && p < 1e-18 {
			break
		}
	}
	return k
}

// logPoisson is the logarithm of the probability of a count. Its form (C. Loader: "Fast and accurate computation of binomial
// probabilities", 2000) has no difference of large numbers.
func logPoisson(k, mean float64) float64 {
	if k == 0 {
		return -mean
	}
	d := (k - mean) / mean
	deviance := float64(mean * (float64((1+d)*math.Log1p(d)) - d))
	return -stirlingError(k) - deviance - math.Log(2*math.Pi*k)/2
}

// stirlingError is ln k! − ln(√(2πk)·(k/e)^k), for k ≥ 1.
func stirlingError(k float64) float64 {
	if k < 16 {
		exact, _ := math.Lgamma(k + 1)
		return exact - float64((k+0.5)*math.Log(k)) + k - math.Log(2*math.Pi)/2
	}
	q := 1 / float64(k*k)
	return (1.0/12 - float64(q*(1.0/360-float64(q*(1.0/1260-q/1680))))) / k
}

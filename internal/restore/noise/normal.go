package noise

import (
	"math"
	"math/bits"
)

// Normal fills dst with independent N(0, std²) numbers of the stream (key, purpose, step). Element i depends on i only.
// The stream repeats after 2³⁴ elements.
func Normal(dst []float32, key Key, purpose Purpose, step uint32, std float64) {
	NormalFrom(dst, 0, key, purpose, step, std)
}

// NormalFrom is Normal for the elements of the stream from first on, a multiple of 4.
func NormalFrom(dst []float32, first int, key Key, purpose Purpose, step uint32, std float64) {
	i := uint32(first / 4)
	n := normalBlocks(dst, key, purpose, step, i, std)
	normal(dst[4*n:], key, purpose, step, i+uint32(n), std)
}

// normal fills dst from block i on. It is the reference for the code of processors.
func normal(dst []float32, key Key, purpose Purpose, step, i uint32, std float64) {
	for ; len(dst) >= 4; dst, i = dst[4:], i+1 {
		a, b, c, d := block(key, purpose, step, i)
		dst[0] = float32(std * quantile(a))
		dst[1] = float32(std * quantile(b))
		dst[2] = float32(std * quantile(c))
		dst[3] = float32(std * quantile(d))
	}
	if len(dst) > 0 {
		var w [4]uint32
		w[0], w[1], w[2], w[3] = block(key, purpose, step, i)
		for j := range dst {
			dst[j] = float32(std * quantile(w[j]))
		}
	}
}

const segments = 32 // per octave of the tail probability

// cubic contains the coefficients of the normal quantile on one segment, in t from 0 to 1, rounded to float32 to remove
// last-bit differences of math libraries.
type cubic struct{ c0, c1, c2, c3 float64 }

var table = buildTable()

// quantile maps a word to a normal deviate. The top bit is the sign. The other 31 bits are the tail probability
// p = (2u+1)/2³³ in (0, 1/2), which selects an octave and one of its 32 segments. The range is ±6.3.
func quantile(w uint32) float64 {
	v := w<<1 | 1
	octave := uint32(bits.LeadingZeros32(v))
	m := v << octave << 1 // the bits after the leading one
	s := &table[octave*segments+m>>27]
	t := float64(m&(1<<27-1)) * (1.0 / (1 << 27))
	// The conversions forbid fused multiply-adds, which would differ between platforms.
	z := float64(s.c3*t) + s.c2
	z = float64(z*t) + s.c1
	z = float64(z*t) + s.c0
	return math.Float64frombits(math.Float64bits(z) ^ uint64(w&(1<<31))<<32)
}

func buildTable() [32 * segments]cubic {
	var out [32 * segments]cubic
	for octave := range 32 {
		top := math.Ldexp(1, -1-octave) // v = 2³¹⁻ᵒ corresponds to p = 2⁻²⁻ᵒ
		for s := range segments {
			var z [4]float64
			for j := range z {
				frac := (float64(s) + float64(j)/3) / segments
				z[j] = upperQuantile(top / 2 * (1 + frac))
			}
			out[octave*segments+s] = cubic{
				c0: round(z[0]),
				c1: round((-11*z[0] + 18*z[1] - 9*z[2] + 2*z[3]) / 2),
				c2: round((18*z[0] - 45*z[1] + 36*z[2] - 9*z[3]) / 2),
				c3: round((-9*z[0] + 27*z[1] - 27*z[2] + 9*z[3]) / 2),
			}
		}
	}
	return out
}

func round(x float64) float64 { return float64(float32(x)) }

// upperQuantile returns the z with P(Z > z) = p, for p in (0, 1/2], by Newton's method.
func upperQuantile(p float64) float64 {
	z := math.Sqrt2 * math.Erfcinv(2*p)
	for range 3 {
		tail := math.Erfc(z/math.Sqrt2) / 2
		density := math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
		z += (tail - p) / density
	}
	return z
}

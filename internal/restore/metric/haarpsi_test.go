package metric

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestDecay compares with math.Exp, at and between the multiples, and one rounding beyond 1.
func TestDecay(t *testing.T) {
	t.Parallel()
	d := newDecay()
	for i := range 100*decaySteps + 2 {
		s := float64(i) / (100 * decaySteps)
		if s > 1 {
			s = math.Nextafter(1, 2)
		}
		want := math.Exp(-haarAlpha * s)
		if got := d.at(s); math.Abs(got-want) > 1e-13*want {
			t.Fatalf("exp(-%v·%v) is %v, want %v", haarAlpha, s, got, want)
		}
	}
}

// TestHaarRows: the code of the processor returns the bits of the definitions, for all lengths up to several groups.
func TestHaarRows(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	for n := range 40 {
		row, dst, sums := make([]float32, 2*n+1), make([]float64, n), make([]float64, n)
		var corners [3][2][]float64
		for k := range 6 {
			corners[k/2][k%2] = make([]float64, n)
		}
		for i := range row {
			row[i] = 3*random.Float32() - 1.5
		}
		for j := range n {
			sums[j] = random.Float64()
			dst[j] = sums[j]
			for k := range 6 {
				corners[k/2][k%2][j] = random.NormFloat64()
			}
		}
		addPairs(dst, row)
		for j, v := range sums {
			if want := v + 255./8*(2+float64(clip(row[2*j]))+float64(clip(row[2*j+1]))); dst[j] != want {
				t.Fatalf("block %d of %d is %v, want %v", j, n, dst[j], want)
			}
		}
		const half = 4
		difference(dst, half, corners[0], corners[1], corners[2])
		for j, got := range dst {
			var d [3]float64
			for k, c := range corners {
				d[k] = c[1][j] - c[0][j]
			}
			if want := math.Abs((d[1]-d[0])-(d[2]-d[1])) / (2 * half); got != want {
				t.Fatalf("difference %d of %d is %v, want %v", j, n, got, want)
			}
		}
	}
}

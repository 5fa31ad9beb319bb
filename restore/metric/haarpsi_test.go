package metric

import (
	"math"
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

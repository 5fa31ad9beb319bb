package noise

import (
	"math"
	"testing"
)

// TestStreamOrder: a stream returns the words of successive blocks of step 0 in order.
func TestStreamOrder(t *testing.T) {
	t.Parallel()
	key := Key{4, 5, 6}
	s := NewStream(key, Operator)
	for i := range uint32(5) {
		var want [4]uint32
		want[0], want[1], want[2], want[3] = block(key, Operator, 0, i)
		for j, w := range want {
			if got := s.Uint32(); got != w {
				t.Errorf("word %d of block %d is %08x, want %08x", j, i, got, w)
			}
		}
	}
}

// TestUniform: each draw is the centre of the interval of its word.
func TestUniform(t *testing.T) {
	t.Parallel()
	key := Key{7}
	words, uniform, between, integers := NewStream(key, Operator), NewStream(key, Operator), NewStream(key, Operator), NewStream(key, Operator)
	for range 100 {
		w := words.Uint32()
		u := (2*float64(w) + 1) / (1 << 33)
		if got := uniform.Uniform(); got != u {
			t.Errorf("word %08x: uniform number %v, want %v", w, got, u)
		}
		if got, want := between.Between(-1, 3), 4*u-1; !(math.Abs(got-want) <= 1e-15) {
			t.Errorf("word %08x: number between -1 and 3 is %v, want %v", w, got, want)
		}
		if got, want := integers.Intn(10), int(10*u); got != want {
			t.Errorf("word %08x: integer below 10 is %d, want %d", w, got, want)
		}
	}
}

// TestTriangular compares the distribution function of the numbers with that of the triangular distribution, by
// Kolmogorov and Smirnov at the 0.1 % level.
func TestTriangular(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ lo, mode, hi float64 }{{0, 1, 4}, {-2, 3, 4}, {1, 1, 2}, {1, 2, 2}} {
		distribution := func(x float64) float64 {
			switch {
			case x <= c.lo:
				return 0
			case x < c.mode:
				return (x - c.lo) * (x - c.lo) / ((c.hi - c.lo) * (c.mode - c.lo))
			case x < c.hi:
				return 1 - (c.hi-x)*(c.hi-x)/((c.hi-c.lo)*(c.hi-c.mode))
			}
			return 1
		}
		const n = 20000
		s := NewStream(Key{8}, Operator)
		var below [41]int // numbers up to each of 41 points
		for range n {
			x := s.Triangular(c.lo, c.mode, c.hi)
			if !(x >= c.lo && x <= c.hi) {
				t.Fatalf("%v: %v is out of range", c, x)
			}
			for i := range below {
				if x <= c.lo+(c.hi-c.lo)*float64(i)/40 {
					below[i]++
				}
			}
		}
		for i, count := range below {
			x := c.lo + (c.hi-c.lo)*float64(i)/40
			if d := math.Abs(float64(count)/n - distribution(x)); !(d <= 1.95/math.Sqrt(n)) {
				t.Errorf("%v: the share of numbers up to %v differs by %.3f", c, x, d)
			}
		}
	}
	if x := NewStream(Key{8}, Operator).Triangular(3, 3, 2); x != 3 {
		t.Errorf("%v in an empty range, want its start", x)
	}
}

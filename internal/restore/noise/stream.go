package noise

import "math"

// Stream draws successive numbers from the words of (key, purpose), for an operator's random parameters.
type Stream struct {
	key     Key
	purpose Purpose
	words   [4]uint32
	next    uint32
}

// NewStream returns a stream at its first word.
func NewStream(key Key, purpose Purpose) *Stream {
	return &Stream{key: key, purpose: purpose}
}

// Uint32 returns the next word.
func (s *Stream) Uint32() uint32 {
	if s.next%4 == 0 {
		w := &s.words
		w[0], w[1], w[2], w[3] = block(s.key, s.purpose, 0, s.next/4)
	}
	w := s.words[s.next%4]
	s.next++
	return w
}

// Uniform returns a uniform number on the open interval (0, 1), with 32 bits.
func (s *Stream) Uniform() float64 { return (float64(s.Uint32()) + 0.5) / (1 << 32) }

// Between returns a uniform number on (lo, hi).
func (s *Stream) Between(lo, hi float64) float64 { return lo + (hi-lo)*s.Uniform() }

// Intn returns a uniform integer in 0..n−1, n > 0, with a bias below n/2³².
func (s *Stream) Intn(n int) int {
	return int(uint64(s.Uint32()) * uint64(n) >> 32)
}

// Triangular returns a number with the triangular distribution on [lo, hi] and the given mode.
func (s *Stream) Triangular(lo, mode, hi float64) float64 {
	u := s.Uniform()
	if hi <= lo {
		return lo
	}
	if f := (mode - lo) / (hi - lo); u < f {
		return lo + math.Sqrt(u*(hi-lo)*(mode-lo))
	}
	return hi - math.Sqrt((1-u)*(hi-lo)*(hi-mode))
}

// Permutation returns a uniformly random order of 0..n−1 (Fisher–Yates).
func (s *Stream) Permutation(n int) []int {
	p := make([]int, n)
	for i := range p {
		j := s.Intn(i + 1)
		p[i] = p[j]
		p[j] = i
	}
	return p
}

// Normal fills dst with independent N(0, std²) numbers. They do not depend on the words that were drawn before, and a second
// call repeats them.
func (s *Stream) Normal(dst []float32, std float64) { Normal(dst, s.key, s.purpose, 1, std) }

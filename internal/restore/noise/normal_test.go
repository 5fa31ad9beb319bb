package noise

import (
	"math"
	"math/bits"
	"testing"
)

// TestNormalEqualsReference: the code of the processor returns the bits of the reference, for all lengths up to three groups, for parts of a
// stream, around the last block, for a call of several parts, and for deviations of all signs.
func TestNormalEqualsReference(t *testing.T) {
	t.Parallel()
	key := Key{0x12345678, 0x9abcdef0, 0xfedcba98}
	for _, c := range []struct {
		length, first int
		std           float64
	}{{3 << 20, 0, 1}, {70_001, 1 << 20, 0.3}, {1000, 1<<34 - 400, 1}, {96, 4, 0}, {96, 8, -2.5}, {96, 0, 1e-40}, {96, 0, 1e300}, {96, 0, math.Inf(1)}} {
		checkEqual(t, c.length, c.first, key, c.std)
	}
	for length := range 100 {
		checkEqual(t, length, 4*length, key, 0.7)
	}
}

func checkEqual(t *testing.T, length, first int, key Key, std float64) {
	t.Helper()
	got, want := make([]float32, length), make([]float32, length)
	NormalFrom(got, first, key, Step.Iteration(3), 5<<20|17, std)
	normal(want, key, Step.Iteration(3), 5<<20|17, uint32(first/4), std)
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("element %d of %d from %d on: %v, want %v", i, length, first, got[i], want[i])
		}
	}
}

// TestNormalOfEdgeWords: the code of the processor returns the bits of the reference for the words at both ends of every segment of the table, with
// both signs, in every block of a group.
func TestNormalOfEdgeWords(t *testing.T) {
	t.Parallel()
	const k0, k1, std, blocks = 0x2468ace0, 0x13579bdf, 0.9, 8
	var got [4 * blocks]float32
	for octave := range 32 {
		for segment := range uint64(segments) {
			begin := (segments + segment) << 27 >> (octave + 1) // of 2u + 1, where u are the lower 31 bits of a word
			end := (segments + segment + 1) << 27 >> (octave + 1)
			for _, v := range []uint64{begin, begin + 2, (begin + end) / 2, end - 2} {
				u := uint32(v>>1) & (1<<31 - 1)
				words := [4]uint32{u, u | 1<<31, ^u, u + 1}
				c := counterOf(words, k0, k1)
				for at := range uint32(blocks) {
					NormalFrom(got[:], 4*int(c[0]-at), Key{k0, k1, c[3]}, Purpose(c[2]), c[1], std)
					for j, w := range words {
						if got, want := got[4*int(at)+j], float32(std*quantile(w)); math.Float32bits(got) != math.Float32bits(want) {
							t.Fatalf("word %08x in block %d: %v, want %v", w, at, got, want)
						}
					}
				}
			}
		}
	}
}

// counterOf returns the counter whose block has the given words: each round of Philox is a bijection.
func counterOf(w [4]uint32, k0, k1 uint32) [4]uint32 {
	for round := range uint32(10) {
		a, c := w[3]*inverse(mul0), w[1]*inverse(mul1)
		hi0, _ := bits.Mul32(mul0, a)
		hi1, _ := bits.Mul32(mul1, c)
		w = [4]uint32{a, w[0] ^ hi1 ^ (k0 + (9-round)*weyl0), c, w[2] ^ hi0 ^ (k1 + (9-round)*weyl1)}
	}
	return w
}

// inverse returns the number whose product with an odd number is 1 modulo 2³².
func inverse(odd uint32) uint32 {
	x := odd // right in three bits; each pass of Newton's method doubles them
	for range 4 {
		x *= 2 - odd*x
	}
	return x
}

package noise

import (
	"encoding/binary"
	"math/bits"
)

// Key identifies the owner of a stream by 96 bits of a digest.
type Key [3]uint32

// NewKey returns the key of a SHA-256 digest.
func NewKey(digest [32]byte) Key {
	return Key{
		binary.LittleEndian.Uint32(digest[0:]),
		binary.LittleEndian.Uint32(digest[4:]),
		binary.LittleEndian.Uint32(digest[8:]),
	}
}

// Purpose separates the streams of one key.
type Purpose uint32

// The purposes. Their values determine the meaning of a seed: never renumber them.
const (
	Measurement Purpose = 1 // the noise in y
	Start       Purpose = 2 // x_T
	Step        Purpose = 3 // ε of one reverse step; the step is the time index t
	Operator    Purpose = 4 // mask positions, motion paths
	Photons     Purpose = 5 // the counts in y; the step is the attempt of a rejection
)

// MaxIterations bounds the iterations of a purpose.
const MaxIterations = 1 << 24

// Iteration returns the purpose of the inner iteration i of a step, in [0, MaxIterations). Iteration 0 is the purpose itself.
func (p Purpose) Iteration(i int) Purpose { return p | Purpose(i)<<8 }

const (
	mul0, mul1   = 0xD2511F53, 0xCD9E8D57
	weyl0, weyl1 = 0x9E3779B9, 0xBB67AE85
)

// philox returns a block of Philox4x32-10, four words for a 128-bit counter and a 64-bit key.
func philox(c0, c1, c2, c3, k0, k1 uint32) (uint32, uint32, uint32, uint32) {
	for range 10 {
		hi0, lo0 := bits.Mul32(mul0, c0)
		hi1, lo1 := bits.Mul32(mul1, c2)
		c0, c1, c2, c3 = hi1^c1^k0, lo1, hi0^c3^k1, lo0
		k0 += weyl0
		k1 += weyl1
	}
	return c0, c1, c2, c3
}

// block returns words 4i..4i+3 of the stream (key, purpose, step).
func block(k Key, p Purpose, step, i uint32) (uint32, uint32, uint32, uint32) {
	return philox(i, step, uint32(p), k[2], k[0], k[1])
}

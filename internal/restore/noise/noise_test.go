package noise

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"runtime"
	"slices"
	"testing"
)

// TestPhiloxKnownAnswers compares with the known-answer vectors of the Random123 distribution for philox4x32-10.
func TestPhiloxKnownAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ctr  [4]uint32
		key  [2]uint32
		want [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, [2]uint32{0xffffffff, 0xffffffff},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		var got [4]uint32
		got[0], got[1], got[2], got[3] = philox(c.ctr[0], c.ctr[1], c.ctr[2], c.ctr[3], c.key[0], c.key[1])
		if got != c.want {
			t.Errorf("philox(%x, %x) = %x, want %x", c.ctr, c.key, got, c.want)
		}
	}
}

func TestQuantileAgainstErf(t *testing.T) {
	t.Parallel()
	worst := 0.0
	for i := range 1 << 16 {
		for _, w := range []uint32{uint32(i) << 15, uint32(i), uint32(i)*2654435761 | 1<<31} {
			p := (2*float64(w&^(1<<31)) + 1) / (1 << 33)
			want := upperQuantile(p)
			if w>>31 == 1 {
				want = -want
			}
			worst = max(worst, math.Abs(quantile(w)-want))
		}
	}
	if !(worst <= 1e-6) {
		t.Errorf("largest error %.2g, want at most 1e-6", worst)
	}
}

func TestNormalMoments(t *testing.T) {
	t.Parallel()
	x := make([]float32, 1<<20)
	Normal(x, Key{1, 2, 3}, Measurement, 0, 1)
	var m [5]float64
	for _, v := range x {
		for k := 1; k <= 4; k++ {
			m[k] += math.Pow(float64(v), float64(k)) / float64(len(x))
		}
	}
	for k, want := range []float64{0, 0, 1, 0, 3} {
		if k > 0 && !(math.Abs(m[k]-want) <= 0.02) {
			t.Errorf("moment %d is %.4f, want %.0f", k, m[k], want)
		}
	}
	// Kolmogorov–Smirnov against the normal distribution, at the 0.1 % level.
	slices.Sort(x)
	d := 0.0
	for i, v := range x {
		f := math.Erfc(-float64(v)/math.Sqrt2) / 2
		d = max(d, math.Abs(f-float64(i)/float64(len(x))))
	}
	if limit := 1.95 / math.Sqrt(float64(len(x))); !(d <= limit) {
		t.Errorf("Kolmogorov-Smirnov distance %.2g above %.2g", d, limit)
	}
}

// TestNormalIsPositional: an element depends on its position only, and the bits never change.
func TestNormalIsPositional(t *testing.T) {
	t.Parallel()
	long, short := make([]float32, 1003), make([]float32, 6)
	Normal(long, Key{7, 8, 9}, Step, 41, 0.5)
	Normal(short, Key{7, 8, 9}, Step, 41, 0.5)
	if !slices.Equal(long[:6], short) {
		t.Errorf("prefix differs: %v and %v", long[:6], short)
	}
	h := sha256.New()
	if err := binary.Write(h, binary.LittleEndian, long); err != nil {
		t.Fatal(err)
	}
	const golden = "8e75b25c7f677e91"
	if got := hex.EncodeToString(h.Sum(nil))[:16]; got != golden {
		t.Errorf("digest %s, want %s: the meaning of seeds has changed", got, golden)
	}
}

// TestTableBits: the bits of the table never change. Other processors may fuse products and sums in the functions of
// the math package, and differ in the last bits of small coefficients.
func TestTableBits(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("the digest is that of amd64")
	}
	h := sha256.New()
	if err := binary.Write(h, binary.LittleEndian, table[:]); err != nil {
		t.Fatal(err)
	}
	const golden = "4983895426ad4074"
	if got := hex.EncodeToString(h.Sum(nil))[:16]; got != golden {
		t.Errorf("digest %s, want %s: the meaning of seeds has changed", got, golden)
	}
}

func TestStreamsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[float32]string{}
	for name, f := range map[string]func([]float32){
		"base":    func(x []float32) { Normal(x, Key{1, 2, 3}, Step, 1, 1) },
		"step":    func(x []float32) { Normal(x, Key{1, 2, 3}, Step, 2, 1) },
		"purpose": func(x []float32) { Normal(x, Key{1, 2, 3}, Start, 1, 1) },
		"key 0":   func(x []float32) { Normal(x, Key{0, 2, 3}, Step, 1, 1) },
		"key 2":   func(x []float32) { Normal(x, Key{1, 2, 4}, Step, 1, 1) },
	} {
		x := make([]float32, 64)
		f(x)
		for _, v := range x {
			if other, ok := seen[v]; ok && other != name {
				t.Errorf("%s and %s share the value %v", name, other, v)
			}
			seen[v] = name
		}
	}
}

func TestPermutation(t *testing.T) {
	t.Parallel()
	p := NewStream(Key{5}, Operator).Permutation(1000)
	q := slices.Clone(p)
	slices.Sort(q)
	for i, v := range q {
		if v != i {
			t.Fatalf("not a permutation at %d", i)
		}
	}
	if slices.Equal(p, q) {
		t.Error("the order is not random")
	}
}

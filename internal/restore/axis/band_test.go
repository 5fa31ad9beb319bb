package axis

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// evaluate computes f of one value.
func evaluate(t *testing.T, v []float32, dims []int, f func(g *onnx.Graph, v onnx.Value) onnx.Value) []float32 {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, dims...)
	return onnxtest.Compute(t, g, []onnx.Value{x}, []onnx.Value{f(g, x)}, v)[0]
}

// blur is a Gaussian blur of n samples with a reflected border.
func blur(n, radius int, std float64) *Band {
	return NewBand(n, n, func(i int, add func(int, float32)) {
		for d := -radius; d <= radius; d++ {
			j := max(i+d, -i-d)
			add(min(j, 2*(n-1)-j), float32(math.Exp(-float64(d*d)/(2*std*std))/(std*math.Sqrt(2*math.Pi))))
		}
	})
}

// smaller has the weights of a triangle about the centre of each run of factor samples, which overlap.
func smaller(n, factor int) *Band {
	f := float64(factor)
	return NewBand(n/factor, n, func(i int, add func(int, float32)) {
		centre := (float64(i)+0.5)*f - 0.5
		for j := int(centre - f); j <= int(centre+f)+1; j++ {
			add(min(max(j, 0), n-1), float32(max(0, 1-math.Abs(float64(j)-centre)/f)/f))
		}
	})
}

// TestBand: a band equals its matrix, and the adjoint its transpose, for bands that are narrower and wider than a block and at the border.
func TestBand(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]*Band{
		"narrow blur": blur(333, 6, 1.5),
		"wide blur":   blur(333, 150, 60),
		"one block":   blur(40, 6, 1.5),
		"smaller":     smaller(720, 4),
		"larger":      smaller(360, 4).Transposed(),
	} {
		for _, axis := range []int{Rows, Cols} {
			for _, m := range []*Band{b, b.Transposed()} {
				dims := []int{1, 2, 6, 6}
				dims[axis] = m.Cols
				v := make([]float32, 12*m.Cols)
				noise.Normal(v, noise.Key{5}, noise.Start, 0, 1)
				got := evaluate(t, v, dims, func(g *onnx.Graph, x onnx.Value) onnx.Value { return m.Along(g, x, axis) })
				want := evaluate(t, v, dims, func(g *onnx.Graph, x onnx.Value) onnx.Value { return m.Dense().Along(g, x, axis) })
				for i := range want {
					if math.Abs(float64(got[i]-want[i])) > 1e-5 {
						t.Fatalf("%s, axis %d: element %d is %g, want %g", name, axis, i, got[i], want[i])
					}
				}
			}
		}
		transposed, dense := b.Transposed().Dense(), b.Dense().Transposed()
		if m := dense; !slices.Equal(b.Times(m).Data, b.Dense().Times(m).Data) {
			t.Errorf("%s: the product differs from that of the matrix", name)
		}
		for i := range dense.Data {
			if transposed.Data[i] != dense.Data[i] {
				t.Fatalf("%s: the transposed band differs at element %d", name, i)
			}
		}
	}
}

// filter is what both filters have.
type filter interface {
	Apply(g *onnx.Graph, x, p onnx.Value) onnx.Value
	Encode(kernel []float32, size int) []float32
	Dims() []int
}

// TestFourierFilter: both filters are the same map, for kernels up to the radius.
func TestFourierFilter(t *testing.T) {
	t.Parallel()
	const h, w = 30, 44
	exact, long := NewReflectFilter(h, w), NewFourierFilter(h, w, 7)
	x := make([]float32, 2*2*h*w)
	noise.Normal(x, noise.Key{3}, noise.Start, 0, 1)
	for _, size := range []int{1, 5, 15} {
		kernel := make([]float32, size*size)
		noise.Normal(kernel, noise.Key{4}, noise.Start, uint32(size), 1/float64(size))
		run := func(f filter) []float32 {
			encoded := f.Encode(kernel, size)
			other := f.Encode(make([]float32, size*size), size) // of the second image
			return evaluate(t, x, []int{2, 2, h, w}, func(g *onnx.Graph, x onnx.Value) onnx.Value {
				return f.Apply(g, x, g.Const(append(append([]float32(nil), encoded...), other...), append([]int{2}, f.Dims()...)...))
			})
		}
		got, want := run(long), run(exact)
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > 1e-4 {
				t.Fatalf("kernel of %d: element %d is %g, want %g", size, i, got[i], want[i])
			}
		}
	}
}

// TestFactors: the lengths of transforms are little above the need, and both matrices are small.
func TestFactors(t *testing.T) {
	t.Parallel()
	for _, n := range []int{17, 30, 1100, 3714, 4714, 9999, 12000} {
		p1, p2 := factors(n)
		if p := p1 * p2; p < n || float64(p) > 1.1*float64(n)+2 || p2 > 3*p1+3 {
			t.Errorf("%d: %d·%d", n, p1, p2)
		}
	}
	// No other two numbers of nearly equal size take fewer products. The product of 30 powers has no prime factors but 2, 3 and 5.
	smooth := func(m int) bool {
		return new(big.Int).Mod(new(big.Int).Exp(big.NewInt(30), big.NewInt(30), nil), big.NewInt(int64(m))).Sign() == 0
	}
	for n := 1; n <= 400; n++ {
		p1, p2 := factors(n)
		if p1*p2 < n || !smooth(p1) || !smooth(p2) {
			t.Errorf("%d: %d·%d", n, p1, p2)
		}
		for a := 1; a <= 40; a++ {
			for b := a; b <= 2*a+3; b++ {
				if smooth(a) && smooth(b) && a*b >= n && a*b*(a+b) < p1*p2*(p1+p2) {
					t.Errorf("%d: %d·%d takes fewer products than %d·%d", n, a, b, p1, p2)
				}
			}
		}
	}
}

package axis

import (
	"math"

	"ddiff/restore/onnx"
)

// ReflectFilter correlates images exactly with an arbitrary kernel per item. The border is reflected without repeating
// the edge.
//
// Reflection makes an image of n samples even and periodic with period 2M, M = n−1, so its
// spectrum is the DCT-I
//
//	X_p = Σ_i w_i x_i cos(πpi/M),   x_i = (2/M)·Σ_p w_p X_p cos(πpi/M),   w = 1/2 at both ends.
//
// Correlation with k turns the cosine into cos(πpi/M)·C_p − sin(πpi/M)·S_p, where C and S are the cosine and sine sums
// of k. Two dimensions have four such products, with the spectra Σ k_ab {cos, sin}(πpa/M)·{cos, sin}(πqb/M). About the
// centre of the axis the cosine is even for even p and odd for odd p, the sine the other way round; the even part of the
// output takes cosines of even p and sines of odd p. So an encoded kernel has one plane for each combination of parities
// of rows and columns, in which cosine and sine sums alternate, and all matrices have half size.
type ReflectFilter struct{ rows, cols *cosineBasis }

// Spectrum is 0: the filter computes the spectra of all channels together.
func (f *ReflectFilter) Spectrum() int { return 0 }

// Dims is the shape of an encoded kernel.
func (f *ReflectFilter) Dims() []int { return []int{4, f.rows.n, f.cols.n} }

// cosineBasis has the transforms along one axis of length n. Spectra hold all even frequencies before all odd ones.
type cosineBasis struct {
	n int
	// analysis of the even and the odd part, [n/2, n/2] each.
	evenIn, oddIn *Matrix
	// synthesis of the even and the odd part, [n/2, n] each.
	evenOut, oddOut *Matrix
}

// NewReflectFilter returns the filter of images of height×width pixels.
func NewReflectFilter(height, width int) *ReflectFilter {
	return &ReflectFilter{newCosineBasis(height), newCosineBasis(width)}
}

// frequency returns the frequency at position i of a spectrum of length n.
func frequency(i, n int) int {
	if i < n/2 {
		return 2 * i
	}
	return 2*(i-n/2) + 1
}

func newCosineBasis(n int) *cosineBasis {
	m := float64(n - 1)
	weight := func(i int) float64 {
		if i == 0 || i == n-1 {
			return 0.5
		}
		return 1
	}
	analysis := func(odd int) *Matrix {
		return Fill(n/2, n/2, func(p, i int) float64 {
			return weight(i) * math.Cos(math.Pi*float64((2*p+odd)*i)/m)
		})
	}
	// The output's part of one parity: cosines of the frequencies of this parity minus sines of the others.
	synthesis := func(odd int) *Matrix {
		return Fill(n/2, n, func(i, at int) float64 {
			p := frequency(at, n)
			angle := math.Pi * float64(p*i) / m
			w := 2 / m * weight(p)
			if p%2 == odd {
				return w * math.Cos(angle)
			}
			return -w * math.Sin(angle)
		})
	}
	return &cosineBasis{n, analysis(0), analysis(1), synthesis(0), synthesis(1)}
}

func (b *cosineBasis) analyse(g *onnx.Graph, x onnx.Value, axis int) onnx.Value {
	e, o := Split(g, x, axis)
	return g.Concat(axis, b.evenIn.Along(g, e, axis), b.oddIn.Along(g, o, axis))
}

// Apply filters x [N, C, H, W] with the encoded kernels p [N, 4, H, W].
func (f *ReflectFilter) Apply(g *onnx.Graph, x, p onnx.Value) onnx.Value {
	spectrum := f.cols.analyse(g, f.rows.analyse(g, x, Rows), Cols)
	var rows [2]onnx.Value
	for r, rowOut := range []*Matrix{f.rows.evenOut, f.rows.oddOut} {
		var cols [2]onnx.Value
		for c, colOut := range []*Matrix{f.cols.evenOut, f.cols.oddOut} {
			k := 2*r + c
			product := g.Mul(spectrum, g.Slice(p, 1, k, k+1))
			cols[c] = colOut.Along(g, rowOut.Along(g, product, Rows), Cols)
		}
		rows[r] = join(g, cols[0], cols[1], Cols)
	}
	return join(g, rows[0], rows[1], Rows)
}

// Encode returns the four planes of a kernel of size×size, stored row by row.
func (f *ReflectFilter) Encode(kernel []float32, size int) []float32 {
	var out []float32
	k := &Matrix{size, size, kernel}
	for r := range 2 {
		rows := f.rows.sums(size, r)
		for c := range 2 {
			cols := f.cols.sums(size, c)
			out = append(out, rows.Times(k).Times(cols.Transposed()).Data...)
		}
	}
	return out
}

// sums returns the cosine (for frequencies of the parity) or sine of each frequency at the kernel's positions, [n, size].
func (b *cosineBasis) sums(size, odd int) *Matrix {
	return Fill(b.n, size, func(at, a int) float64 {
		p := frequency(at, b.n)
		angle := math.Pi * float64(p*(a-size/2)) / float64(b.n-1)
		if p%2 == odd {
			return math.Cos(angle)
		}
		return math.Sin(angle)
	})
}

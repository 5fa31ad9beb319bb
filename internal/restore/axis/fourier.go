package axis

import (
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/dsp/fourier"

	"ddiff/restore/onnx"
)

// FourierFilter correlates images with a kernel per item, as [ReflectFilter] does, without matrices of the size of an axis.
//
// The image is reflected by the radius of the largest kernel and filled with zeros up to a length P = p₁·p₂ along each axis. Its
// transform of length P is two products with matrices of p₁ and p₂ rows (Cooley and Tukey): with j = j₁p₂ + j₂ and k = k₁ + p₁k₂
//
//	X[k₁, k₂] = Σ_j₂ e(−j₂k₂/p₂)·e(−j₂k₁/P)·Σ_j₁ e(−j₁k₁/p₁)·x[j₁, j₂],   e(v) = exp(2πi·v).
//
// Spectra stay in the order of k₁, k₂.
type FourierFilter struct {
	radius     int
	rows, cols *twoFactor
}

// twoFactor is the transform of one axis of n samples.
type twoFactor struct {
	n, p1, p2      int
	cos1, sin1     *Matrix // [p1, p1]
	cos2, sin2     *Matrix // [p2, p2]
	twistC, twistS *Matrix // [p1, p2], of e(j₂k₁/P)
}

// NewFourierFilter returns the filter of images of height×width pixels with kernels of a radius.
func NewFourierFilter(height, width, radius int) *FourierFilter {
	return &FourierFilter{radius, newTwoFactor(height, radius), newTwoFactor(width, radius)}
}

func newTwoFactor(n, radius int) *twoFactor {
	p1, p2 := factors(n + 2*radius)
	angle := func(i, j, of int) float64 { return 2 * math.Pi * float64(i*j%of) / float64(of) }
	both := func(rows, cols, of int) (c, s *Matrix) {
		return Fill(rows, cols, func(i, j int) float64 { return math.Cos(angle(i, j, of)) }),
			Fill(rows, cols, func(i, j int) float64 { return math.Sin(angle(i, j, of)) })
	}
	t := &twoFactor{n: n, p1: p1, p2: p2}
	t.cos1, t.sin1 = both(p1, p1, p1)
	t.cos2, t.sin2 = both(p2, p2, p2)
	t.twistC, t.twistS = both(p1, p2, p1*p2)
	return t
}

// factors returns two numbers without prime factors above 5 whose product is at least n. The transform with them takes the fewest products.
func factors(n int) (p1, p2 int) {
	smooth := func(m int) bool {
		for _, f := range []int{2, 3, 5} {
			for m%f == 0 {
				m /= f
			}
		}
		return m == 1
	}
	best := math.MaxInt
	root := int(math.Sqrt(float64(n)))
	for a := max(root/2, 1); a <= root+1; a++ {
		if !smooth(a) {
			continue
		}
		b := (n + a - 1) / a
		for !smooth(b) {
			b++
		}
		if cost := a * b * (a + b); cost < best {
			best, p1, p2 = cost, a, b
		}
	}
	return p1, p2
}

func (t *twoFactor) length() int { return t.p1 * t.p2 }

// complexValue is a pair of real values; im is the zero Value for a real one.
type complexValue struct{ re, im onnx.Value }

// times multiplies with c + i·sign·s by product, a linear operation in each part.
func times(g *onnx.Graph, v complexValue, sign int, product func(sine bool, v onnx.Value) onnx.Value) complexValue {
	out := complexValue{re: product(false, v.re), im: product(true, v.re)}
	if sign < 0 {
		out.im = g.Neg(out.im)
	}
	if v.im.Name == "" {
		return out
	}
	cross := product(true, v.im)
	if sign > 0 {
		out.re = g.Minus(out.re, cross)
	} else {
		out.re = g.Add(out.re, cross)
	}
	out.im = g.Add(out.im, product(false, v.im))
	return out
}

// realTimes is the real part of times.
func realTimes(g *onnx.Graph, v complexValue, sign int, product func(sine bool, v onnx.Value) onnx.Value) onnx.Value {
	re, cross := product(false, v.re), product(true, v.im)
	if sign > 0 {
		return g.Minus(re, cross)
	}
	return g.Add(re, cross)
}

// stages are the three products of the transform of an axis of images [M, P, Q], in the order of the forward transform: with the matrix of
// p1, the twists, and the matrix of p2.
func (t *twoFactor) stages(g *onnx.Graph, axis int) [3]func(sine bool, v onnx.Value) onnx.Value {
	choose := func(sine bool, c, s *Matrix) *Matrix {
		if sine {
			return s
		}
		return c
	}
	// reshaped calls f with the axis in two parts, and restores the shape.
	reshaped := func(v onnx.Value, f func(v onnx.Value) onnx.Value) onnx.Value {
		m, p, q := v.Dims[0], v.Dims[1], v.Dims[2]
		if axis == 1 {
			return g.Reshape(f(g.Reshape(v, m, t.p1, t.p2, q)), m, p, q)
		}
		return g.Reshape(f(g.Reshape(v, m*p, t.p1, t.p2)), m, p, q)
	}
	return [3]func(sine bool, v onnx.Value) onnx.Value{
		func(sine bool, v onnx.Value) onnx.Value {
			c := choose(sine, t.cos1, t.sin1).Value(g)
			if axis == 1 {
				m, p, q := v.Dims[0], v.Dims[1], v.Dims[2]
				return g.Reshape(g.MatMul(c, g.Reshape(v, m, t.p1, t.p2*q)), m, p, q)
			}
			return reshaped(v, func(v onnx.Value) onnx.Value { return g.MatMul(c, v) })
		},
		func(sine bool, v onnx.Value) onnx.Value {
			c := choose(sine, t.twistC, t.twistS)
			return reshaped(v, func(v onnx.Value) onnx.Value {
				if axis == 1 {
					return g.Mul(v, g.Const(c.Data, t.p1, t.p2, 1))
				}
				return g.Mul(v, g.Const(c.Data, t.p1, t.p2))
			})
		},
		func(sine bool, v onnx.Value) onnx.Value {
			c := choose(sine, t.cos2, t.sin2).Value(g) // symmetric
			return reshaped(v, func(v onnx.Value) onnx.Value {
				if axis == 1 {
					return g.MatMul(c, v)
				}
				return g.MatMul(v, c)
			})
		},
	}
}

// Apply filters x [N, C, H, W] with the encoded kernels p [N, 2, P, Q]: one channel after another, so that the spectrum of one is in
// memory.
func (f *FourierFilter) Apply(g *onnx.Graph, x, p onnx.Value) onnx.Value {
	var channels []onnx.Value
	for c := range x.Dims[1] {
		channels = append(channels, f.applyChannels(g, g.Slice(x, 1, c, c+1), p))
	}
	return g.Concat(1, channels...)
}

// applyChannels filters all channels together.
func (f *FourierFilter) applyChannels(g *onnx.Graph, x, p onnx.Value) onnx.Value {
	n, c, h, w := x.Dims[0], x.Dims[1], x.Dims[2], x.Dims[3]
	height, width := f.rows.length(), f.cols.length()
	x = reflected(g, reflected(g, x, Rows, f.radius, height), Cols, f.radius, width)
	rows, cols := f.rows.stages(g, 1), f.cols.stages(g, 2)

	v := complexValue{re: g.Reshape(x, n*c, height, width)}
	for _, stage := range rows {
		v = times(g, v, -1, stage)
	}
	for _, stage := range cols {
		v = times(g, v, -1, stage)
	}
	kernel := func(sine bool, v onnx.Value) onnx.Value {
		k := 0
		if sine {
			k = 1
		}
		return g.Reshape(g.Mul(g.Reshape(v, n, c, height, width), g.Slice(p, 1, k, k+1)), n*c, height, width)
	}
	v = times(g, v, 1, kernel)
	for i := 2; i >= 0; i-- {
		v = times(g, v, 1, cols[i])
	}
	v = times(g, times(g, v, 1, rows[2]), 1, rows[1])
	y := g.Reshape(realTimes(g, v, 1, rows[0]), n, c, height, width)
	y = g.Slice(g.Slice(y, Rows, f.radius, f.radius+h), Cols, f.radius, f.radius+w)
	return g.Mul(y, g.Scalar(float32(1/float64(height*width))))
}

// reflected extends an axis by its reflection without the edge, on both sides, and by zeros up to a length.
func reflected(g *onnx.Graph, v onnx.Value, axis, radius, length int) onnx.Value {
	n := v.Dims[axis]
	parts := []onnx.Value{v}
	if radius > 0 {
		parts = []onnx.Value{
			g.Reverse(g.Slice(v, axis, 1, radius+1), axis), v, g.Reverse(g.Slice(v, axis, n-1-radius, n-1), axis),
		}
	}
	if rest := length - n - 2*radius; rest > 0 {
		dims := append([]int(nil), v.Dims...)
		dims[axis] = rest
		parts = append(parts, g.Expand(g.Scalar(0), dims...))
	}
	if len(parts) == 1 {
		return v
	}
	return g.Concat(axis, parts...)
}

// Spectrum is the number of values of the spectrum of one channel: one channel is computed after another.
func (f *FourierFilter) Spectrum() int {
	return 2 * f.rows.length() * f.cols.length()
}

// Dims is the shape of an encoded kernel.
func (f *FourierFilter) Dims() []int { return []int{2, f.rows.length(), f.cols.length()} }

// Encode returns real and imaginary part of the spectrum with which a kernel of size×size, stored row by row, multiplies that of an image.
func (f *FourierFilter) Encode(kernel []float32, size int) []float32 {
	height, width := f.rows.length(), f.cols.length()
	at := func(a, length int) int { return (a - size/2 + length) % length }
	along := fourier.NewCmplxFFT(width)
	spectra := make([][]complex128, size)
	for a := range size {
		row := make([]complex128, width)
		for b := range size {
			row[at(b, width)] = complex(float64(kernel[a*size+b]), 0)
		}
		spectra[a] = along.Coefficients(row, row)
	}
	out := make([]float32, 2*height*width)
	down, column := fourier.NewCmplxFFT(height), make([]complex128, height)
	for k := range width {
		clear(column)
		for a := range size {
			column[at(a, height)] = spectra[a][k]
		}
		down.Coefficients(column, column)
		x := f.cols.place(k)
		for i, v := range column {
			v = cmplx.Conj(v) // a correlation
			to := f.rows.place(i)*width + x
			out[to], out[height*width+to] = float32(real(v)), float32(imag(v))
		}
	}
	return out
}

// place returns the position of frequency k in a spectrum.
func (t *twoFactor) place(k int) int { return k%t.p1*t.p2 + k/t.p1 }

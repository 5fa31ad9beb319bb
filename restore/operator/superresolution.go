package operator

import (
	"fmt"
	"math"

	"ddiff/restore/onnx"
)

// superResolution is y = R·x·Rᵀ: bicubic antialiased downsampling by an integer factor.
type superResolution struct {
	shape      Shape
	rows, cols *matrix // R for the rows [h, H] and the columns [w, W]
}

func superResolutionTask() task {
	return task{
		name: SuperResolution, about: "bicubic antialiased downsampling by an integer factor",
		defaults: map[string]float64{"factor": 4},
		make: func(s Shape, p map[string]float64) (definition, error) {
			f := int(p["factor"])
			if float64(f) != p["factor"] || f < 2 || f > 16 {
				return nil, fmt.Errorf("%w factor: %g is not a whole number in 2..16", ErrParam, p["factor"])
			}
			if s.Height%f != 0 || s.Width%f != 0 {
				return nil, fmt.Errorf("%w: %d×%d is not a multiple of the factor %d", ErrShape, s.Width, s.Height, f)
			}
			return &superResolution{s, bicubicDown(s.Height, f), bicubicDown(s.Width, f)}, nil
		},
	}
}

func (o *superResolution) measurement() []int {
	return []int{o.shape.Channels, o.rows.rows, o.cols.rows}
}

func (o *superResolution) forward(g *onnx.Graph, x, _ onnx.Value) onnx.Value {
	return g.MatMul(g.MatMul(o.rows.value(g), x), o.cols.transposed().value(g))
}

// baseline enlarges y bicubically: each side by U·y·Uᵀ.
func (o *superResolution) baseline(y []float32) []float32 {
	f := o.shape.Height / o.rows.rows
	up, upCols := bicubicUp(o.rows.rows, f), bicubicUp(o.cols.rows, f)
	var out []float32
	plane := o.rows.rows * o.cols.rows
	for c := range o.shape.Channels {
		m := &matrix{o.rows.rows, o.cols.rows, y[c*plane : (c+1)*plane]}
		out = append(out, up.times(m).times(upCols.transposed()).data...)
	}
	return out
}

// cubic is the interpolation kernel of Keys with a = −1/2.
func cubic(x float64) float64 {
	x = math.Abs(x)
	switch {
	case x <= 1:
		return (1.5*x-2.5)*x*x + 1
	case x < 2:
		return ((-0.5*x+2.5)*x-4)*x + 2
	}
	return 0
}

// bicubicDown is R: the cubic stretched by the factor (support 4·factor pixels), aligned at
// pixel centres, normalised per output pixel, the border mirrored with its edge repeated.
func bicubicDown(n, factor int) *matrix {
	r := newMatrix(n/factor, n)
	f := float64(factor)
	for i := range r.rows {
		centre := (float64(i)+0.5)*f - 0.5
		interpolate(r, i, centre, f)
	}
	return r
}

// bicubicUp enlarges n samples by the factor with the plain cubic.
func bicubicUp(n, factor int) *matrix {
	r := newMatrix(n*factor, n)
	for i := range r.rows {
		centre := (float64(i)+0.5)/float64(factor) - 0.5
		interpolate(r, i, centre, 1)
	}
	return r
}

// interpolate fills row i with the cubic, stretched, around centre.
func interpolate(r *matrix, i int, centre, stretch float64) {
	lo, hi := int(math.Floor(centre-2*stretch))+1, int(math.Ceil(centre+2*stretch))-1
	sum := 0.0
	for j := lo; j <= hi; j++ {
		sum += cubic((float64(j) - centre) / stretch)
	}
	for j := lo; j <= hi; j++ {
		w := cubic((float64(j)-centre)/stretch) / sum
		r.data[i*r.cols+mirrorRepeat(j, r.cols)] += float32(w)
	}
}

// mirrorRepeat maps an index beyond the border back: … 1 0 | 0 1 … n−1 | n−1 n−2 …
func mirrorRepeat(j, n int) int {
	period := 2 * n
	j = ((j % period) + period) % period
	if j >= n {
		return period - 1 - j
	}
	return j
}

// mirror maps an index beyond the border back without repeating the edge: … 2 1 | 0 1 … n−1 | n−2 …
func mirror(j, n int) int {
	period := 2 * (n - 1)
	j = ((j % period) + period) % period
	if j >= n {
		return period - j
	}
	return j
}

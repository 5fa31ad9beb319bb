package operator

import (
	"fmt"
	"math"
	"sync"

	"ddiff/internal/restore/axis"
	"ddiff/internal/restore/raster"
	"ddiff/restore/parameter"
)

// SuperResolution is the task of enlarging an image.
const SuperResolution = "super_resolution"

// maxFactor is the largest factor of super-resolution.
const maxFactor = 256

// superResolution is y = R·x·Rᵀ: bicubic antialiased downsampling by an integer factor.
func superResolution() Definition {
	return enlarging(Definition{
		Label: "Super-resolution", Doc: "bicubic antialiased downsampling by an integer factor",
	}, bicubicDown)
}

// enlarging completes the definition of y = R·x·Rᵀ with the parameter factor. down makes R [n/factor, n] for a side of n pixels; it commutes
// with the reflection of the side.
func enlarging(d Definition, down func(n, factor int) *axis.Band) Definition {
	d.Linear = true
	d.Parameters = parameter.List{
		{Name: "factor", Default: 4, Min: 2, Max: maxFactor, Integer: true, Doc: "side of the image over that of the measurement"},
	}
	d.Dense, d.Long, d.Local = 0.5, true, true
	d.Build = func(s Shape, p map[string]float64) (Expression, error) {
		f := int(p["factor"])
		if s.Height%f != 0 || s.Width%f != 0 {
			return Expression{}, fmt.Errorf("%w: %d×%d is not a multiple of the factor %d; choose a size that is one, such as --fit center_crop --size %d",
				ErrShape, s.Width, s.Height, f, suitableSize(min(s.Height, s.Width), f))
		}
		a := axis.NewSeparable(down(s.Height, f), down(s.Width, f)) // [h, H] and [w, W]
		up := sync.OnceValues(func() (rows, cols *axis.Band) { return bicubicUp(s.Height/f, f), bicubicUp(s.Width/f, f) })
		return Expression{
			Measurement: []int{s.Channels, s.Height / f, s.Width / f},
			Forward:     a.Forward, Adjoint: a.Adjoint(),
			Baseline: func(y []float32) []float32 {
				rows, cols := up()
				return enlarge(y, rows, cols)
			},
		}, nil
	}
	d.SVD = func(s Shape, p map[string]float64) (*SVD, error) {
		f := int(p["factor"])
		return bandSVD(down(s.Height, f), down(s.Width, f))
	}
	d.ImageSide = func(side int, p map[string]float64) int { return side * int(p["factor"]) }
	return d
}

// suitableSize returns the multiple of the factor and of 32, which suits the usual networks, that is nearest to a side.
func suitableSize(side, factor int) int {
	const network = 32
	n := factor
	for n%network != 0 {
		n += factor
	}
	return max(n, (side+n/2)/n*n)
}

// enlarge enlarges y by bicubic matrices for its rows and columns: U·y·Uᵀ.
func enlarge(y []float32, rows, cols *axis.Band) []float32 {
	n := rows.Cols * cols.Cols
	out := make([]float32, 0, len(y)/n*rows.Rows*cols.Rows)
	for ; len(y) > 0; y = y[n:] {
		m := &axis.Matrix{Rows: rows.Cols, Cols: cols.Cols, Data: y[:n]}
		wide := cols.Times(m.Transposed()).Transposed()
		out = append(out, rows.Times(wide).Data...)
	}
	return out
}

// bicubicDown is R: the cubic stretched by the factor (support 4·factor pixels), aligned at
// pixel centres, normalised per output pixel, the border mirrored with its edge repeated.
func bicubicDown(n, factor int) *axis.Band {
	f := float64(factor)
	return axis.NewBand(n/factor, n, func(i int, add func(int, float32)) { interpolate(add, n, (float64(i)+0.5)*f-0.5, f) })
}

// bicubicUp enlarges n samples by the factor with the plain cubic.
func bicubicUp(n, factor int) *axis.Band {
	return axis.NewBand(n*factor, n, func(i int, add func(int, float32)) {
		interpolate(add, n, (float64(i)+0.5)/float64(factor)-0.5, 1)
	})
}

// interpolate adds the cubic, stretched, around centre of n samples.
func interpolate(add func(int, float32), n int, centre, stretch float64) {
	lo, hi := int(math.Floor(centre-2*stretch)), int(math.Ceil(centre+2*stretch))
	sum := 0.0
	for j := lo; j <= hi; j++ {
		sum += raster.Cubic((float64(j) - centre) / stretch)
	}
	for j := lo; j <= hi; j++ {
		add(mirrorRepeat(j, n), float32(raster.Cubic((float64(j)-centre)/stretch)/sum))
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

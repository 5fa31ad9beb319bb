package raster

import (
	"fmt"
	"math"
)

// axis is the resampling of one side from in samples to out, of which n are computed, starting at from.
type axis struct {
	in, out, from, n int
}

// identical reports whether the output samples are input samples.
func (a axis) identical() bool { return a.in == a.out }

// taps are the weights of the input samples, from first on, of one output sample.
type taps struct {
	first  int
	weight []float64
}

// taps returns the weights of all computed samples. Pixels are centred on half-integers. When shrinking, the kernel is
// widened by the factor. Weights beyond the border are dropped and the others normalised to a sum of 1.
func (a axis) taps() []taps {
	step := float64(a.in) / float64(a.out)
	width := max(step, 1)
	radius := 2 * width
	all := make([]taps, a.n)
	for i := range all {
		centre := (float64(a.from+i) + 0.5) * step
		first := max(0, int(math.Floor(centre-radius+0.5)))
		end := min(a.in, int(math.Floor(centre+radius+0.5)))
		weight := make([]float64, end-first)
		sum := 0.0
		for k := range weight {
			weight[k] = Cubic((float64(first+k) + 0.5 - centre) / width)
			sum += weight[k]
		}
		for k := range weight {
			weight[k] /= sum
		}
		all[i] = taps{first, weight}
	}
	return all
}

// Cubic is the cubic convolution kernel of Keys with a = −1/2 (Catmull-Rom).
func Cubic(x float64) float64 {
	x = math.Abs(x)
	switch {
	case x < 1:
		return (1.5*x-2.5)*x*x + 1
	case x < 2:
		return ((-0.5*x+2.5)*x-4)*x + 2
	default:
		return 0
	}
}

// resample scales along the rows, then along the columns, and clamps the kernel's overshoot to [-1, 1].
func resample(img *Image, across, down axis) *Image {
	out := resampleDown(resampleAcross(img, across), down)
	if !across.identical() || !down.identical() {
		for i, v := range out.Pix {
			out.Pix[i] = min(1, max(-1, v))
		}
	}
	return out
}

// resampleAcross returns the image itself if all its columns remain.
func resampleAcross(img *Image, a axis) *Image {
	if a.identical() && a.n == img.Width {
		return img
	}
	out := New(img.Channels, img.Height, a.n)
	rows := img.Channels * img.Height
	if a.identical() {
		for y := range rows {
			copy(out.Pix[y*a.n:(y+1)*a.n], img.Pix[y*img.Width+a.from:])
		}
		return out
	}
	all := a.taps()
	for y := range rows {
		src, dst := img.Pix[y*img.Width:(y+1)*img.Width], out.Pix[y*a.n:(y+1)*a.n]
		for x, t := range all {
			sum := 0.0
			for k, v := range src[t.first : t.first+len(t.weight)] {
				sum += t.weight[k] * float64(v)
			}
			dst[x] = float32(sum)
		}
	}
	return out
}

// resampleDown returns a new image.
func resampleDown(img *Image, a axis) *Image {
	w := img.Width
	out := New(img.Channels, a.n, w)
	if a.identical() {
		for c := range img.Channels {
			copy(out.Plane(c), img.Plane(c)[a.from*w:])
		}
		return out
	}
	all := a.taps()
	sum := make([]float64, w)
	for c := range img.Channels {
		src, dst := img.Plane(c), out.Plane(c)
		for y, t := range all {
			clear(sum)
			for k, weight := range t.weight {
				AddWeighted(sum, weight, src[(t.first+k)*w:(t.first+k+1)*w])
			}
			for x, v := range sum {
				dst[y*w+x] = float32(v)
			}
		}
	}
	return out
}

// AddWeighted adds values times a weight to at least as many sums. The conversion prevents that a processor rounds a product and a sum together.
func AddWeighted(sum []float64, weight float64, values []float32) {
	for i := addFast(sum, weight, values); i < len(values); i++ {
		sum[i] += float64(weight * float64(values[i]))
	}
}

// Scale returns an image of w by h pixels, with the filter of [Fit]. [ErrShape]: a size is not positive.
func Scale(img *Image, w, h int) (*Image, error) {
	if err := img.Validate(); err != nil {
		return nil, fmt.Errorf("scale image: %w", err)
	}
	if w < 1 || h < 1 {
		return nil, fmt.Errorf("scale image: %dx%d pixels, both must be positive: %w", w, h, ErrShape)
	}
	return resample(img, axis{in: img.Width, out: w, n: w}, axis{in: img.Height, out: h, n: h}), nil
}

package metric

import (
	"fmt"
	"math"
	"sync"

	"ddiff/internal/restore/raster"
)

// Version 1: both images clipped to [-1, 1] and mapped to [0, 1]; averaged over f x f
// blocks, f = max(1, round(min(height, width)/256)) with halves to even and incomplete blocks dropped; 11x11 Gaussian
// window of standard deviation 1.5, valid positions only; k1 = 0.01, k2 = 0.03, data range 1; mean over the positions of
// a channel, then over the channels.
func ssim() Metric {
	return Metric{Name: NameSSIM, Version: "1", Title: "SSIM", Decimals: 3, Better: Higher, Minimum: windowSize, Main: true, Degraded: true, Compare: compareSSIM}
}

const (
	windowSize  = 11
	windowSigma = 1.5
	c1          = 0.01 * 0.01 // (k1 * data range)^2
	c2          = 0.03 * 0.03 // (k2 * data range)^2
)

// compareSSIM returns the structural similarity of two images, at most 1, the score of identical images. It is symmetric. The error is [ErrTooSmall].
func compareSSIM(x, y *raster.Image) (float64, error) {
	f := blockSize(x.Height, x.Width)
	height, width := x.Height/f, x.Width/f
	if height < windowSize || width < windowSize {
		return 0, fmt.Errorf("ssim: image of %dx%d pixels, must be at least %dx%d: %w",
			x.Width, x.Height, windowSize, windowSize, ErrTooSmall)
	}
	s := newSSIMScratch(height, width)
	defer scratches.Put(s)
	sum := 0.0
	for c := range x.Channels {
		s.pool(x.Plane(c), y.Plane(c), x.Width, f)
		sum += s.score()
	}
	return sum / float64(x.Channels), nil
}

// blockSize returns the side of the blocks to average, as in piq.
func blockSize(height, width int) int {
	return max(1, int(math.RoundToEven(float64(min(height, width))/256)))
}

// ssimScratch contains one channel of both images and its filtered rows. With a = (x + y)/2 − 1/2 and b = (x − y)/2, the means and variances of a and b in a
// window give those of x and y: the similarity is (1 − l)(1 − c), l = 2 mean(b)²/(mean(a + 1/2)² + mean(b)² + c1/2), c = 2 var(b)/(var(a) + var(b) + c2/2).
// The variance in a window is the mean of those in its columns and the variance of their means, each about the value in the middle. So float32 is enough: all
// errors are relative to l and c.
type ssimScratch struct {
	height, width int
	window        [windowSize]float32
	a, b          []float32
	down          [4][]float32 // one row of the means of a and b in windows along the columns, and of their variances
	similarity    []float32    // of one row of positions
}

// scratches has those of earlier images.
var scratches sync.Pool

// newSSIMScratch returns a scratch with any values.
func newSSIMScratch(height, width int) *ssimScratch {
	if s, ok := scratches.Get().(*ssimScratch); ok && s.height == height && s.width == width {
		return s
	}
	s := &ssimScratch{
		height: height, width: width, window: gaussian(),
		a: make([]float32, height*width), b: make([]float32, height*width),
		similarity: make([]float32, width-windowSize+1),
	}
	for q := range s.down {
		s.down[q] = make([]float32, width)
	}
	return s
}

// gaussian returns the normalised window along one axis. The 2-D window is its outer product. The weights are multiples of 2⁻²⁴ whose sum is exactly 1, so
// that the variance of flat values is 0.
func gaussian() [windowSize]float32 {
	var w [windowSize]float64
	sum := 0.0
	for i := range w {
		d := float64(i - windowSize/2)
		w[i] = math.Exp(-d * d / (2 * windowSigma * windowSigma))
		sum += w[i]
	}
	const unit = 1 << 24
	var rounded [windowSize]float32
	rest := 1.0
	for i := range w {
		v := math.Round(w[i]/sum*unit) / unit
		rounded[i] = float32(v)
		rest -= v
	}
	rounded[windowSize/2] += float32(rest)
	return rounded
}

// pool sets a and b from the planes of two images, with rows of the given width, averaged over blocks of f x f.
func (s *ssimScratch) pool(x, y []float32, width, f int) {
	if f == 1 {
		halves(s.a, s.b, x, y)
		return
	}
	area := float64(f * f)
	row := 0
	for at := range s.a {
		if column := at % s.width; column == 0 && at > 0 {
			row += f
		}
		u, v := 0.0, 0.0
		for k := range f {
			from := (row+k)*width + at%s.width*f
			for i, p := range x[from : from+f] {
				u += unit(p)
				v += unit(y[from+i])
			}
		}
		s.a[at], s.b[at] = float32((u+v)/(2*area)-0.5), float32((u-v)/(2*area))
	}
}

// score returns the mean similarity of the channel.
func (s *ssimScratch) score() float64 {
	sum := 0.0
	rows := s.height - windowSize + 1
	for top := range rows {
		s.filterDown(top, s.filterDownFast(top))
		s.compare(s.compareFast())
		sum += total(s.similarity)
	}
	return sum / float64(rows*len(s.similarity))
}

// filterDown sets the means and variances in the columns of the rows from top on, from column first on.
func (s *ssimScratch) filterDown(top, first int) {
	for q, v := range [2][]float32{s.a[top*s.width:], s.b[top*s.width:]} {
		for i := first; i < s.width; i++ {
			s.down[q][i], s.down[q+2][i] = s.moments(v[i:], s.width)
		}
	}
}

// compare applies the window along the row and sets the similarity, from position first on.
func (s *ssimScratch) compare(first int) {
	for i := first; i < len(s.similarity); i++ {
		ma, va := s.moments(s.down[0][i:], 1)
		mb, vb := s.moments(s.down[1][i:], 1)
		va += s.mean(s.down[2][i:])
		vb += s.mean(s.down[3][i:])
		ma += 0.5
		b := float32(mb * mb)
		l := 2 * b / (float32(ma*ma) + b + c1/2)
		c := 2 * vb / (va + vb + c2/2)
		s.similarity[i] = float32((1 - l) * (1 - c))
	}
}

// moments returns mean and variance of values in a window. Conversions prevent that a processor rounds a product and a sum together: all processors return the
// same bits.
func (s *ssimScratch) moments(v []float32, stride int) (mean, variance float32) {
	const last = windowSize - 1
	middle := v[last/2*stride]
	var first, second float32
	for k, w := range s.window[:last/2] {
		d, e := v[k*stride]-middle, v[(last-k)*stride]-middle
		first += float32(w * (d + e))
		second += float32(w * (float32(d*d) + float32(e*e)))
	}
	return middle + first, second - float32(first*first)
}

// mean returns the mean of values in a window.
func (s *ssimScratch) mean(v []float32) float32 {
	const last = windowSize - 1
	sum := float32(s.window[last/2] * v[last/2])
	for k, w := range s.window[:last/2] {
		sum += float32(w * (v[k] + v[last-k]))
	}
	return sum
}

// total returns the sum of values.
func total(values []float32) float64 {
	var a, b, c, d float64 // in registers, which an array is not
	for ; len(values) >= 4; values = values[4:] {
		a, b, c, d = a+float64(values[0]), b+float64(values[1]), c+float64(values[2]), d+float64(values[3])
	}
	for _, v := range values {
		a += float64(v)
	}
	return (a + b) + (c + d)
}

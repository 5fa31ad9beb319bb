package metric

import (
	"fmt"
	"math"

	"ddiff/restore/raster"
)

// SSIMID is the id of [SSIM]. Version 1: both images clipped to [-1, 1] and mapped to [0, 1]; averaged over f x f
// blocks, f = max(1, round(min(height, width)/256)) with halves to even and incomplete blocks dropped; 11x11 Gaussian
// window of standard deviation 1.5, valid positions only; k1 = 0.01, k2 = 0.03, data range 1; mean over the positions of
// a channel, then over the channels.
const SSIMID = "ssim@1"

const (
	windowSize  = 11
	windowSigma = 1.5
	c1          = 0.01 * 0.01 // (k1 * data range)^2
	c2          = 0.03 * 0.03 // (k2 * data range)^2
)

// SSIM returns the structural similarity of two images of equal shape, at most 1, the score of identical images. It is
// symmetric. Errors are [ErrShape], [ErrTooSmall] and [raster.ErrNotFinite].
func SSIM(x, y *raster.Image) (float64, error) {
	if err := checkPair(x, y); err != nil {
		return 0, fmt.Errorf("ssim: %w", err)
	}
	f := blockSize(x.Height, x.Width)
	height, width := x.Height/f, x.Width/f
	if height < windowSize || width < windowSize {
		return 0, fmt.Errorf("ssim: image of %dx%d pixels, must be at least %dx%d: %w",
			x.Width, x.Height, windowSize, windowSize, ErrTooSmall)
	}
	s := newSSIMScratch(height, width)
	sum := 0.0
	for c := range x.Channels {
		pool(s.x, x.Plane(c), x.Width, height, width, f)
		pool(s.y, y.Plane(c), x.Width, height, width, f)
		sum += s.score()
	}
	return sum / float64(x.Channels), nil
}

// blockSize returns the side of the blocks to average, as in piq.
func blockSize(height, width int) int {
	return max(1, int(math.RoundToEven(float64(min(height, width))/256)))
}

// pool maps samples to [0, 1] and averages blocks of f x f into dst of height x width.
func pool(dst []float64, src []float32, stride, height, width, f int) {
	if f == 1 {
		for i, v := range src {
			dst[i] = unit(v)
		}
		return
	}
	area := float64(f * f)
	for y := range height {
		for x := range width {
			sum := 0.0
			for k := range f {
				for _, v := range src[(y*f+k)*stride+x*f:][:f] {
					sum += unit(v)
				}
			}
			dst[y*width+x] = sum / area
		}
	}
}

// ssimScratch contains one channel of both images and the filtered rows.
type ssimScratch struct {
	height, width int
	window        [windowSize]float64
	x, y          []float64
	// One row of windowed sums of x, y, x²+y² and xy: filtered along the columns, then along the row.
	down, across [4][]float64
}

func newSSIMScratch(height, width int) *ssimScratch {
	s := &ssimScratch{
		height: height, width: width, window: gaussian(),
		x: make([]float64, height*width), y: make([]float64, height*width),
	}
	for q := range s.down {
		s.down[q] = make([]float64, width)
		s.across[q] = make([]float64, width-windowSize+1)
	}
	return s
}

// gaussian returns the normalised window along one axis. The 2-D window is its outer product.
func gaussian() [windowSize]float64 {
	var w [windowSize]float64
	sum := 0.0
	for i := range w {
		d := float64(i - windowSize/2)
		w[i] = math.Exp(-d * d / (2 * windowSigma * windowSigma))
		sum += w[i]
	}
	for i := range w {
		w[i] /= sum
	}
	return w
}

// score returns the mean similarity of the channel.
func (s *ssimScratch) score() float64 {
	sum := 0.0
	rows := s.height - windowSize + 1
	for top := range rows {
		s.filterDown(top, s.filterDownFast(top))
		for q := range s.down {
			s.filterAcross(s.across[q], s.down[q], s.filterAcrossFast(s.across[q], s.down[q]))
		}
		sum += s.rowScore()
	}
	return sum / float64(rows*len(s.across[0]))
}

// filterDown applies the window to the columns of the rows from top on, from column first on.
func (s *ssimScratch) filterDown(top, first int) {
	mx, my, sq, xy := s.down[0][first:], s.down[1][first:s.width], s.down[2][first:s.width], s.down[3][first:s.width]
	for q := range s.down {
		clear(s.down[q][first:])
	}
	for k, w := range s.window {
		xs := s.x[(top+k)*s.width+first:][:len(mx)]
		ys := s.y[(top+k)*s.width+first:][:len(mx)]
		for i, x := range xs {
			y := ys[i]
			wx, wy := w*x, w*y
			mx[i] += wx
			my[i] += wy
			sq[i] += wx*x + wy*y
			xy[i] += wx * y
		}
	}
}

// filterAcross applies the symmetric window along a row, from position first on.
func (s *ssimScratch) filterAcross(dst, src []float64, first int) {
	w := &s.window
	for i := first; i < len(dst); i++ {
		v := src[i : i+windowSize : i+windowSize]
		dst[i] = w[0]*(v[0]+v[10]) + w[1]*(v[1]+v[9]) + w[2]*(v[2]+v[8]) +
			w[3]*(v[3]+v[7]) + w[4]*(v[4]+v[6]) + w[5]*v[5]
	}
}

// rowScore returns the sum of the similarity over one row of positions.
func (s *ssimScratch) rowScore() float64 {
	sum := 0.0
	for i, mx := range s.across[0] {
		my, sq, xy := s.across[1][i], s.across[2][i], s.across[3][i]
		mean, product := mx*mx+my*my, mx*my
		contrast := (2*(xy-product) + c2) / (sq - mean + c2)
		sum += (2*product + c1) / (mean + c1) * contrast
	}
	return sum
}

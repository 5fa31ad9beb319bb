package metric

import (
	"fmt"
	"math"

	"ddiff/restore/raster"
)

// HaarPSIID is the id of [HaarPSI]. Version 1: Reisenhofer et al., A Haar wavelet-based perceptual similarity index for image
// quality assessment (2018), with c = 30 and alpha = 4.2, as piq computes it: images clipped to [-1, 1] and mapped to
// [0, 255], YIQ, averages over blocks of 2x2, three scales.
const HaarPSIID = "haarpsi@1"

const (
	haarC      = 30
	haarAlpha  = 4.2
	haarScales = 3
	// haarMinimum is the smallest side of an image.
	haarMinimum = 2 << haarScales
	// epsilon is that of float64, as in piq.
	epsilon = 0x1p-52
)

// yiq are the rows of the conversion from RGB to YIQ.
var yiq = [3][3]float64{{0.299, 0.587, 0.114}, {0.5959, -0.2746, -0.3213}, {0.2115, -0.5227, 0.3112}}

// HaarPSI returns the Haar wavelet-based perceptual similarity index of two images of equal shape with 1 or 3 channels, in
// [0, 1]; identical images have 1. It is symmetric and needs no weights. Errors are [ErrShape], [ErrTooSmall] below 16 pixels
// and [raster.ErrNotFinite].
func HaarPSI(x, y *raster.Image) (float64, error) {
	if err := checkPair(x, y); err != nil {
		return 0, fmt.Errorf("haarpsi: %w", err)
	}
	if x.Channels != 1 && x.Channels != 3 {
		return 0, fmt.Errorf("haarpsi: image of %d channels, must be 1 or 3: %w", x.Channels, ErrShape)
	}
	if min(x.Height, x.Width) < haarMinimum {
		return 0, fmt.Errorf("haarpsi: image of %dx%d pixels, must be at least %dx%d: %w", x.Width, x.Height, haarMinimum, haarMinimum, ErrTooSmall)
	}
	height, width := (x.Height+padding(x))/2, (x.Width+padding(x))/2
	a, b := haarPlanes(x, height, width), haarPlanes(y, height, width)
	s, t := newTable(a[0], height, width), newTable(b[0], height, width)
	var sum, weight float64
	add := func(similarity, w float64) {
		sum += w / (1 + math.Exp(-haarAlpha*similarity))
		weight += w
	}
	for i := range height {
		for j := range width {
			var both float64          // weights of the two orientations
			var similarity [2]float64 // of each
			for scale := 1; scale < haarScales; scale++ {
				side := 1 << scale
				x, y := s.haar(i, j, side), t.haar(i, j, side)
				for k := range similarity {
					similarity[k] += similar(x[k], y[k]) / (haarScales - 1)
				}
			}
			const coarse = 1 << haarScales
			x, y := s.haar(i, j, coarse), t.haar(i, j, coarse)
			for k := range similarity {
				w := max(x[k], y[k])
				add(similarity[k], w)
				both += w
			}
			if len(a) == 3 {
				similarity := (similar(chroma(a[1], height, width, i, j), chroma(b[1], height, width, i, j)) +
					similar(chroma(a[2], height, width, i, j), chroma(b[2], height, width, i, j))) / 2
				add(similarity, both/2)
			}
		}
	}
	score := (sum + epsilon) / (weight + epsilon)
	logit := math.Log(score/(1-score)) / haarAlpha
	return min(1, logit*logit), nil
}

// padding is the number of zero rows and columns that piq adds before it averages blocks.
func padding(img *raster.Image) int { return max(img.Height%2, img.Width%2) }

// haarPlanes converts an image to YIQ on [0, 255] and averages blocks of 2x2, height times width of them.
func haarPlanes(img *raster.Image, height, width int) [][]float64 {
	planes := make([][]float64, img.Channels)
	for c := range planes {
		planes[c] = make([]float64, height*width)
	}
	for i := range img.Height {
		for j := range img.Width {
			at, to := i*img.Width+j, i/2*width+j/2
			if img.Channels == 1 {
				planes[0][to] += 255 * unit(img.Pix[at]) / 4
				continue
			}
			rgb := unitRGB(img, at)
			for c, w := range yiq {
				planes[c][to] += 255 * (w[0]*rgb[0] + w[1]*rgb[1] + w[2]*rgb[2]) / 4
			}
		}
	}
	return planes
}

// unitRGB returns the samples of a pixel of three channels on [0, 1].
func unitRGB(img *raster.Image, at int) [3]float64 {
	n := img.Height * img.Width
	return [3]float64{unit(img.Pix[at]), unit(img.Pix[at+n]), unit(img.Pix[at+2*n])}
}

// luma returns the luma of a pixel of one or three channels on [0, 1].
func luma(img *raster.Image, at int) float64 {
	if img.Channels == 1 {
		return unit(img.Pix[at])
	}
	rgb, w := unitRGB(img, at), yiq[0]
	return w[0]*rgb[0] + w[1]*rgb[1] + w[2]*rgb[2]
}

// table has the sums of all samples above and to the left of each position.
type table struct {
	height, width int
	sums          []float64
}

func newTable(plane []float64, height, width int) table {
	t := table{height, width, make([]float64, (height+1)*(width+1))}
	for i := range height {
		row := 0.0
		for j := range width {
			row += plane[i*width+j]
			t.sums[(i+1)*(width+1)+j+1] = t.sums[i*(width+1)+j+1] + row
		}
	}
	return t
}

// haar returns the magnitudes of the Haar coefficients of the given side at a position, with zeros outside: the difference of the upper and the
// lower half, and that of the left and the right half.
func (t table) haar(i, j, side int) [2]float64 {
	w, half := t.width+1, side/2
	top, left, bottom, right := max(0, i-half+1), max(0, j-half+1), min(t.height, i+half+1), min(t.width, j+half+1)
	upper, middle, lower := t.sums[top*w:][:w], t.sums[(i+1)*w:][:w], t.sums[bottom*w:][:w]
	whole := lower[right] - upper[right] - lower[left] + upper[left]
	above := middle[right] - upper[right] - middle[left] + upper[left]
	before := lower[j+1] - upper[j+1] - lower[left] + upper[left]
	return [2]float64{math.Abs(2*above-whole) / float64(side), math.Abs(2*before-whole) / float64(side)}
}

// chroma is the magnitude of the mean of 2x2 samples, with zeros beyond the last row and column.
func chroma(plane []float64, height, width, i, j int) float64 {
	sum := 0.0
	for y := i; y < min(height, i+2); y++ {
		for x := j; x < min(width, j+2); x++ {
			sum += plane[y*width+x]
		}
	}
	return math.Abs(sum / 4)
}

func similar(a, b float64) float64 { return (2*a*b + haarC) / (a*a + b*b + haarC) }

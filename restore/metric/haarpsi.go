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
			var both float64 // weights of the two orientations
			for _, vertical := range []bool{false, true} {
				similarity := 0.0
				for scale := 1; scale < haarScales; scale++ {
					side := 1 << scale
					similarity += similar(s.haar(i, j, side, vertical), t.haar(i, j, side, vertical)) / (haarScales - 1)
				}
				const coarse = 1 << haarScales
				w := max(s.haar(i, j, coarse, vertical), t.haar(i, j, coarse, vertical))
				add(similarity, w)
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
		for i := range 2 * height {
			for j := range 2 * width {
				if i < img.Height && j < img.Width {
					planes[c][i/2*width+j/2] += 255 * component(img, c, i*img.Width+j) / 4
				}
			}
		}
	}
	return planes
}

// component is a component of a pixel in YIQ, or its grey level, for samples on [0, 1].
func component(img *raster.Image, c, at int) float64 {
	if img.Channels == 1 {
		return unit(img.Pix[at])
	}
	v := 0.0
	for k, w := range yiq[c] {
		v += w * unit(img.Plane(k)[at])
	}
	return v
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

// sum is the sum of rows top to bottom and columns left to right, exclusive, with zeros outside.
func (t table) sum(top, bottom, left, right int) float64 {
	top, bottom = max(0, top), min(t.height, bottom)
	left, right = max(0, left), min(t.width, right)
	if top >= bottom || left >= right {
		return 0
	}
	w := t.width + 1
	return t.sums[bottom*w+right] - t.sums[top*w+right] - t.sums[bottom*w+left] + t.sums[top*w+left]
}

// haar is the magnitude of the Haar coefficient of the given side at a position: the difference of the upper and the
// lower half, or of the left and the right half if vertical.
func (t table) haar(i, j, side int, vertical bool) float64 {
	top, left := i-side/2+1, j-side/2+1
	first := t.sum(top, top+side/2, left, left+side)
	if vertical {
		first = t.sum(top, top+side, left, left+side/2)
	}
	return math.Abs(2*first-t.sum(top, top+side, left, left+side)) / float64(side)
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

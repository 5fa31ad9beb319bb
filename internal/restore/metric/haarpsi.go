package metric

import (
	"fmt"
	"math"

	"ddiff/internal/restore/raster"
)

// Version 1: Reisenhofer et al., A Haar wavelet-based perceptual similarity index for image
// quality assessment (2018), with c = 30 and alpha = 4.2, as piq computes it: images clipped to [-1, 1] and mapped to
// [0, 255], YIQ, averages over blocks of 2x2, three scales.
func haarPSI() Metric {
	return Metric{Name: "haarpsi", Version: "1", Title: "HaarPSI", Decimals: 3, Better: Higher, Minimum: haarMinimum, Compare: compareHaar}
}

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

// compareHaar returns the Haar wavelet-based perceptual similarity index of two images with 1 or 3 channels, in [0, 1];
// identical images have 1. It is symmetric and needs no weights. The error is [ErrTooSmall] below 16 pixels.
func compareHaar(x, y *raster.Image) (float64, error) {
	if x.Channels != 1 && x.Channels != 3 {
		return 0, fmt.Errorf("haarpsi: image of %d channels, must be 1 or 3: %w", x.Channels, ErrUndefined)
	}
	if min(x.Height, x.Width) < haarMinimum {
		return 0, fmt.Errorf("haarpsi: image of %dx%d pixels, must be at least %dx%d: %w", x.Width, x.Height, haarMinimum, haarMinimum, ErrTooSmall)
	}
	height, width := (x.Height+padding(x))/2, (x.Width+padding(x))/2
	a, b := haarPlanes(x, height, width), haarPlanes(y, height, width)
	s, t := newTable(a[0], height, width), newTable(b[0], height, width)
	var sum, weight float64
	powers := newDecay()
	add := func(similarity, w float64) {
		sum += w / (1 + powers.at(similarity))
		weight += w
	}
	both, similarity := make([]float64, width), make([]float64, width)
	m, n := make([]float64, width), make([]float64, width) // magnitudes of x and y
	for i := range height {
		clear(both) // weights of the two orientations
		for _, magnitudes := range []func(t table, dst []float64, i, half int){table.upper, table.left} {
			clear(similarity)
			for scale := 1; scale < haarScales; scale++ {
				magnitudes(s, m, i, 1<<scale/2)
				magnitudes(t, n, i, 1<<scale/2)
				for j, v := range m {
					similarity[j] += similar(v, n[j]) / (haarScales - 1)
				}
			}
			const coarse = 1 << haarScales
			magnitudes(s, m, i, coarse/2)
			magnitudes(t, n, i, coarse/2)
			for j, v := range m {
				w := max(v, n[j])
				add(similarity[j], w)
				both[j] += w
			}
		}
		if len(a) < 3 {
			continue
		}
		clear(similarity)
		for c := 1; c < 3; c++ {
			chroma(m, a[c], i)
			chroma(n, b[c], i)
			for j, v := range m {
				similarity[j] += similar(v, n[j]) / 2
			}
		}
		for j, w := range both {
			add(similarity[j], w/2)
		}
	}
	score := (sum + epsilon) / (weight + epsilon)
	logit := math.Log(score/(1-score)) / haarAlpha
	return min(1, logit*logit), nil
}

// decay has exp(-haarAlpha·s) at multiples of 1/decaySteps from 0 to 1.
type decay [decaySteps + 1]float64

const decaySteps = 256

func newDecay() *decay {
	var d decay
	for k := range d {
		d[k] = math.Exp(-haarAlpha * float64(k) / decaySteps)
	}
	return &d
}

// at returns exp(-haarAlpha·s) for s in [0, 1], faster than math.Exp: the series from the next smaller multiple has a relative error below 1e-13.
func (d *decay) at(s float64) float64 {
	k := min(int(s*decaySteps), decaySteps)
	r := haarAlpha * (float64(k)/decaySteps - s)
	return d[k] * (1 + r*(1+r*(1./2+r*(1./6+r*(1./24+r*(1./120))))))
}

// padding is the number of zero rows and columns that piq adds before it averages blocks.
func padding(img *raster.Image) int { return max(img.Height%2, img.Width%2) }

// haarPlanes averages blocks of 2x2 on [0, 255], height times width of them, and converts them to YIQ.
func haarPlanes(img *raster.Image, height, width int) [][]float64 {
	planes := make([][]float64, img.Channels)
	for c := range planes {
		planes[c] = make([]float64, height*width)
		for i := range img.Height {
			row := img.Plane(c)[i*img.Width:][:img.Width]
			dst := planes[c][i/2*width:][:width]
			addPairs(dst, row)
			if last := len(row) - 1; last%2 == 0 {
				dst[last/2] += 255. / 4 * unit(row[last])
			}
		}
	}
	if len(planes) == 1 {
		return planes
	}
	red, green, blue := planes[0], planes[1][:height*width], planes[2][:height*width]
	for i, r := range red {
		g, b := green[i], blue[i]
		red[i] = yiq[0][0]*r + yiq[0][1]*g + yiq[0][2]*b
		green[i] = yiq[1][0]*r + yiq[1][1]*g + yiq[1][2]*b
		blue[i] = yiq[2][0]*r + yiq[2][1]*g + yiq[2][2]*b
	}
	return planes
}

// addPairs adds the pairs of a row to the averages of their blocks.
func addPairs(dst []float64, row []float32) {
	for j := addPairsFast(dst, row); j < len(row)/2; j++ {
		dst[j] += 255. / 8 * (2 + float64(clip(row[2*j])) + float64(clip(row[2*j+1])))
	}
}

// border is the number of rows and columns beyond a plane that coefficients reach.
const border = 1 << haarScales / 2

// table has the sums of all samples above and to the left of each position, and of those within the border around the plane, which is 0 there.
type table struct {
	width, stride int
	sums          []float64
}

func newTable(plane []float64, height, width int) table {
	stride := width + 1 + 2*border
	t := table{width, stride, make([]float64, (height+1+2*border)*stride)}
	for i := border + 1; i <= height+2*border; i++ {
		above, here := t.sums[(i-1)*stride:][:stride], t.sums[i*stride:][:stride]
		copy(here, above)
		if i > border+height {
			continue
		}
		row := 0.0
		for j, v := range plane[(i-border-1)*width:][:width] {
			row += v
			here[border+1+j] += row
		}
		for j := border + 1 + width; j < stride; j++ {
			here[j] += row
		}
	}
	return t
}

// row returns the sums above row i that begin with column j, one for each column of the plane.
func (t table) row(i, j int) []float64 { return t.sums[(i+border)*t.stride+j+border:][:t.width] }

// upper sets dst to the magnitudes of the Haar coefficients of row i with sides of 2*half: the differences of the upper and the lower half.
func (t table) upper(dst []float64, i, half int) {
	difference(dst, half,
		[2][]float64{t.row(i-half+1, 1-half), t.row(i-half+1, 1+half)},
		[2][]float64{t.row(i+1, 1-half), t.row(i+1, 1+half)},
		[2][]float64{t.row(i+half+1, 1-half), t.row(i+half+1, 1+half)})
}

// left is upper for the differences of the left and the right half.
func (t table) left(dst []float64, i, half int) {
	difference(dst, half,
		[2][]float64{t.row(i-half+1, 1-half), t.row(i+half+1, 1-half)},
		[2][]float64{t.row(i-half+1, 1), t.row(i+half+1, 1)},
		[2][]float64{t.row(i-half+1, 1+half), t.row(i+half+1, 1+half)})
}

// difference sets dst to the magnitudes of the differences of two adjacent rectangles, which have three pairs of corners.
func difference(dst []float64, half int, from, middle, to [2][]float64) {
	n, scale := len(dst), 1/float64(2*half) // exact
	a, b, c, d, e, f := from[0][:n], from[1][:n], middle[0][:n], middle[1][:n], to[0][:n], to[1][:n]
	for j := differenceFast(dst, scale, from, middle, to); j < n; j++ {
		first, second := (d[j]-c[j])-(b[j]-a[j]), (f[j]-e[j])-(d[j]-c[j])
		dst[j] = math.Abs(first-second) * scale
	}
}

// chroma sets dst to the magnitudes of the means of 2x2 samples from row i on, with zeros beyond the last row and column.
func chroma(dst, plane []float64, i int) {
	n := len(dst)
	copy(dst, plane[i*n:])
	if below := plane[(i+1)*n:]; len(below) > 0 {
		for j := range dst {
			dst[j] += below[j]
		}
	}
	for j := range n - 1 {
		dst[j] = math.Abs(dst[j]+dst[j+1]) / 4
	}
	dst[n-1] = math.Abs(dst[n-1]) / 4
}

func similar(a, b float64) float64 { return (2*a*b + haarC) / (a*a + b*b + haarC) }

package operator

import (
	"math"
	"slices"

	"ddiff/internal/restore/raster"
)

// arrange shows a measurement of any shape of 1 to 3 dimensions: one or three channels are a grey or a colour image, other
// channels lie side by side in rows, a vector fills a nearly square image row by row. Values within [−1, 1] are shown as
// they are; otherwise the least becomes black and the largest white.
func arrange(y []float32, dims []int) *raster.Image {
	y = intoRange(y)
	var c, h, w int
	switch len(dims) {
	case 3:
		c, h, w = dims[0], dims[1], dims[2]
	case 2:
		c, h, w = 1, dims[0], dims[1]
	default:
		c, w = 1, int(math.Ceil(math.Sqrt(float64(len(y)))))
		h = (len(y) + w - 1) / w
		y = append(y, slices.Repeat([]float32{-1}, h*w-len(y))...)
	}
	if c == 1 || c == 3 {
		return &raster.Image{Channels: c, Height: h, Width: w, Pix: y}
	}
	columns := int(math.Ceil(math.Sqrt(float64(c))))
	rows := (c + columns - 1) / columns
	out := &raster.Image{Channels: 1, Height: rows * h, Width: columns * w, Pix: slices.Repeat([]float32{-1}, rows*h*columns*w)}
	for k := range c {
		top, left := k/columns*h, k%columns*w
		for i := range h {
			copy(out.Pix[(top+i)*out.Width+left:][:w], y[(k*h+i)*w:][:w])
		}
	}
	return out
}

// intoRange returns a copy of the values in [−1, 1].
func intoRange(y []float32) []float32 {
	lo, hi := slices.Min(y), slices.Max(y)
	out := slices.Clone(y)
	// Noise leaves the range of an image a little.
	const slack = 1.5
	if lo >= -slack && hi <= slack {
		return out
	}
	span := max(hi-lo, math.SmallestNonzeroFloat32)
	for i, v := range y {
		out[i] = 2*(v-lo)/span - 1
	}
	return out
}

package operator

import "math"

// at256 is the unit of lengths that scale with the image.
const at256 = "pixels of an image of 256 pixels"

// Shape is the size of an image: channels, rows, columns.
type Shape struct{ Channels, Height, Width int }

// Dims is the shape of a batch of n images.
func (s Shape) Dims(n int) []int { return []int{n, s.Channels, s.Height, s.Width} }

// Size is the number of elements of one image.
func (s Shape) Size() int { return s.Channels * s.Height * s.Width }

// Length scales a length that is stated for 256 pixels to this image.
func (s Shape) Length(at256 float64) float64 {
	return at256 * float64(min(s.Height, s.Width)) / 256
}

// odd scales a kernel size that is stated for 256 pixels to an odd number of pixels.
func (s Shape) odd(at256 float64) int {
	return 2*int(math.Round((s.Length(at256)-1)/2)) + 1
}

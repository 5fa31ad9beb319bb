package operator

import (
	"slices"
	"testing"

	"ddiff/internal/restore/raster"
)

// TestArrange: channels of other numbers than one and three lie side by side, and vectors fill a nearly square image. Free
// places are black.
func TestArrange(t *testing.T) {
	t.Parallel()
	values := func(n int) []float32 {
		y := make([]float32, n)
		for i := range y {
			y[i] = float32(i) / 64
		}
		return y
	}
	for _, c := range []struct {
		dims []int
		want raster.Image // Pix in 1/64, −64 is black
	}{
		{[]int{1, 2, 3}, raster.Image{Channels: 1, Height: 2, Width: 3, Pix: []float32{0, 1, 2, 3, 4, 5}}},
		{[]int{2, 3}, raster.Image{Channels: 1, Height: 2, Width: 3, Pix: []float32{0, 1, 2, 3, 4, 5}}},
		{[]int{3, 1, 2}, raster.Image{Channels: 3, Height: 1, Width: 2, Pix: []float32{0, 1, 2, 3, 4, 5}}},
		{[]int{2, 1, 3}, raster.Image{Channels: 1, Height: 1, Width: 6, Pix: []float32{0, 1, 2, 3, 4, 5}}},
		{[]int{5, 2, 1}, raster.Image{Channels: 1, Height: 4, Width: 3, Pix: []float32{0, 2, 4, 1, 3, 5, 6, 8, -64, 7, 9, -64}}},
		{[]int{4}, raster.Image{Channels: 1, Height: 2, Width: 2, Pix: []float32{0, 1, 2, 3}}},
		{[]int{5}, raster.Image{Channels: 1, Height: 2, Width: 3, Pix: []float32{0, 1, 2, 3, 4, -64}}},
		{[]int{7}, raster.Image{Channels: 1, Height: 3, Width: 3, Pix: []float32{0, 1, 2, 3, 4, 5, 6, -64, -64}}},
	} {
		n := 1
		for _, d := range c.dims {
			n *= d
		}
		got := arrange(values(n), c.dims)
		for i := range got.Pix {
			got.Pix[i] *= 64
		}
		if got.Channels != c.want.Channels || got.Height != c.want.Height || got.Width != c.want.Width || !slices.Equal(got.Pix, c.want.Pix) {
			t.Errorf("%v: %d channels of %d×%d, %v; want %+v", c.dims, got.Channels, got.Width, got.Height, got.Pix, c.want)
		}
	}
}

// TestIntoRange: values far outside of the range of an image are scaled to it, those of a noisy image are not.
func TestIntoRange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ y, want []float32 }{
		{[]float32{-1.5, 0, 1.5}, []float32{-1.5, 0, 1.5}},
		{[]float32{-1.6, 0, 1.6}, []float32{-1, 0, 1}},
		{[]float32{-2, 0, 0}, []float32{-1, 1, 1}},
		{[]float32{0, 1, 4}, []float32{-1, -0.5, 1}},
		{[]float32{10, 14, 18}, []float32{-1, 0, 1}},
		{[]float32{7, 7}, []float32{-1, -1}},
	} {
		given := slices.Clone(c.y)
		if got := intoRange(c.y); !slices.Equal(got, c.want) || !slices.Equal(given, c.y) {
			t.Errorf("%v becomes %v, want %v", given, got, c.want)
		}
	}
}

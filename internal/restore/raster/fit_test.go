package raster

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// pattern returns a deterministic, uneven image with the extremes -1 and 1.
func pattern(channels, height, width int) *Image {
	img := New(channels, height, width)
	for c := range channels {
		for y := range height {
			for x := range width {
				img.Plane(c)[y*width+x] = float32((7*x+13*y+3*x*y+5*c)%17)/8 - 1
			}
		}
	}
	return img
}

func TestShape(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name                 string
		policy               string
		w, h, size, multiple int
		w2, h2               int
		fails                string // part of the message
	}{
		{"crop", CenterCrop, 500, 333, 128, 16, 128, 128, ""},
		{"resize", Resize, 5, 900, 64, 64, 64, 64, ""},
		{"pad", Pad, 33, 64, 0, 32, 64, 64, ""},
		{"pad of a multiple", Pad, 96, 64, 7, 32, 96, 64, ""},
		{"size not a multiple", CenterCrop, 500, 333, 100, 16, 0, 0, "size is 100"},
		{"size zero", Resize, 500, 333, 0, 16, 0, 0, "size is 0"},
		{"multiple zero", Pad, 500, 333, 0, 0, 0, 0, "multiple is 0"},
		{"no pixels", Pad, 0, 333, 0, 1, 0, 0, "0x333"},
		{"unknown policy", "stretch", 5, 5, 8, 8, 0, 0, `"stretch"`},
	}
	for _, tt := range tests {
		w2, h2, err := Shape(tt.policy, tt.w, tt.h, tt.size, tt.multiple)
		if w2 != tt.w2 || h2 != tt.h2 {
			t.Errorf("%s: %dx%d, want %dx%d", tt.name, w2, h2, tt.w2, tt.h2)
		}
		if (tt.fails == "") != (err == nil) {
			t.Errorf("%s: error %v", tt.name, err)
		}
		if err != nil && (!errors.Is(err, ErrShape) || !strings.Contains(err.Error(), tt.fails)) {
			t.Errorf("%s: error %v, want ErrShape with %q", tt.name, err, tt.fails)
		}
	}
}

// TestFitHasShape: Fit and Shape agree for unusual sizes, and values stay in range.
func TestFitHasShape(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{1, 1}, {1, 40}, {40, 1}, {16, 16}, {17, 31}, {33, 15}, {100, 7}, {2, 3}} {
		for _, policy := range []string{CenterCrop, Resize, Pad} {
			img := pattern(3, size[1], size[0])
			before := img.Clone()
			got, err := Fit(img, policy, 16, 8)
			must(t, err)
			w, h, _ := Shape(policy, img.Width, img.Height, 16, 8)
			if err := got.Validate(); err != nil || got.Width != w || got.Height != h || got.Channels != 3 {
				t.Fatalf("%s of %v: %dx%d, %v; want %dx%d", policy, size, got.Width, got.Height, err, w, h)
			}
			for i, v := range got.Pix {
				if !(v >= -1 && v <= 1) {
					t.Fatalf("%s of %v: value %d is %v", policy, size, i, v)
				}
			}
			if !slices.Equal(img.Pix, before.Pix) {
				t.Fatalf("%s of %v changed its input", policy, size)
			}
		}
	}
}

func TestFitExactCopies(t *testing.T) {
	t.Parallel()
	img := pattern(3, 16, 24)
	img.Pix[8*24+12] = 1.5 // a copy does not clamp
	for _, policy := range []string{CenterCrop, Pad} {
		got, err := Fit(img, policy, 16, 8)
		must(t, err)
		left := (24 - got.Width) / 2
		for c := range 3 {
			for y := range 16 {
				want := img.Plane(c)[y*24+left:][:got.Width]
				if row := got.Plane(c)[y*got.Width:][:got.Width]; !slices.Equal(row, want) {
					t.Fatalf("%s: channel %d row %d = %v, want %v", policy, c, y, row, want)
				}
			}
		}
	}
	square := pattern(3, 16, 16)
	got, err := Fit(square, Resize, 16, 16)
	if err != nil || !slices.Equal(got.Pix, square.Pix) {
		t.Fatalf("resize to the same size changed the pixels, %v", err)
	}
	got.Pix[0] = 9
	if square.Pix[0] == 9 {
		t.Error("the result shares memory with the input")
	}
}

func TestFitPadMirrors(t *testing.T) {
	t.Parallel()
	img := &Image{Channels: 1, Height: 2, Width: 3, Pix: []float32{
		.1, .2, .3,
		.4, .5, .6,
	}}
	got, err := Fit(img, Pad, 0, 4)
	must(t, err)
	want := []float32{
		.1, .2, .3, .2,
		.4, .5, .6, .5,
		.1, .2, .3, .2,
		.4, .5, .6, .5,
	}
	if !slices.Equal(got.Pix, want) {
		t.Errorf("got %v, want %v", got.Pix, want)
	}
}

// TestResampleReference compares with Pillow 9.4, Image.resize(..., BICUBIC) in mode F, which has the same kernel
// without clamping.
func TestResampleReference(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name                    string
		w, h, toWidth, toHeight int
		want                    []float32
	}{
		{"smaller", 7, 5, 3, 3, []float32{
			0.009964, 0.131345, -0.236515,
			-0.16875, -0.091601, -0.269934,
			-0.625217, -0.440479, 0.165315,
		}},
		{"larger", 4, 3, 6, 6, []float32{
			-1, -0.708477, 0.061794, 0.712767, 0.098183, -0.639561,
			-0.715833, -0.486958, 0.017737, 0.797576, 0.243345, -0.476229,
			0.333392, -0.017681, -0.07543, 0.97797, 0.551078, -0.130625,
			0.685968, 0.144421, -0.228694, 0.501727, 0.497755, 0.286837,
			0.295572, -0.021951, -0.421917, -0.568578, 0.090382, 0.721307,
			0.1116, -0.100346, -0.513183, -1, -0.10186, 0.926567,
		}},
	}
	for _, tt := range tests {
		got := resample(pattern(1, tt.h, tt.w),
			axis{in: tt.w, out: tt.toWidth, n: tt.toWidth}, axis{in: tt.h, out: tt.toHeight, n: tt.toHeight})
		for i, want := range tt.want {
			if !(math.Abs(float64(got.Pix[i]-want)) <= 2e-6) {
				t.Errorf("%s: value %d = %v, want %v", tt.name, i, got.Pix[i], want)
			}
		}
	}
}

// TestAddWeighted: all numbers of values, also those for which a processor has no group, change as many sums and no more, by the bits of one after the other.
func TestAddWeighted(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 3, 4, 5, 8, 13, 1<<17 + 6} {
		values, sums, want := make([]float32, n), make([]float64, n+4), make([]float64, n+4)
		for i := range sums {
			sums[i] = 1 / float64(i+3)
			want[i] = sums[i]
		}
		for i := range values {
			values[i] = 1 / float32(i+7)
			want[i] += float64(-0.3 * float64(values[i]))
		}
		AddWeighted(sums, -0.3, values)
		if !slices.Equal(sums, want) {
			t.Errorf("%d values: the sums differ", n)
		}
	}
}

// TestFitDoesNotAlias: stripes of one pixel shrink to grey.
func TestFitDoesNotAlias(t *testing.T) {
	t.Parallel()
	img := New(1, 128, 128)
	for i := range img.Pix {
		img.Pix[i] = float32(2*(i%2)) - 1
	}
	got, err := Fit(img, Resize, 32, 1)
	must(t, err)
	for y := 4; y < 28; y++ {
		for x := 4; x < 28; x++ {
			if v := got.Pix[y*32+x]; !(math.Abs(float64(v)) <= 0.01) {
				t.Fatalf("(%d,%d) = %v, want 0", x, y, v)
			}
		}
	}
}

// TestFitCropEqualsScaleThenCrop: CenterCrop equals scaling the whole image and cropping.
func TestFitCropEqualsScaleThenCrop(t *testing.T) {
	t.Parallel()
	img := pattern(3, 90, 61)
	got, err := Fit(img, CenterCrop, 24, 8)
	must(t, err)
	const tall = 35 // the height 90 times 24/61, rounded
	whole := resample(img, axis{in: 61, out: 24, n: 24}, axis{in: 90, out: tall, n: tall})
	for c := range 3 {
		if want := whole.Plane(c)[(tall-24)/2*24:][:24*24]; !slices.Equal(got.Plane(c), want) {
			t.Fatalf("channel %d differs from scaling everything and cropping", c)
		}
	}
}

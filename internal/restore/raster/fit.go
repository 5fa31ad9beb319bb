package raster

import (
	"fmt"
	"math"
)

// The policies of [Fit] and [Shape].
const (
	// CenterCrop scales the short side to the size, preserving the aspect ratio, and crops the long side around its centre.
	CenterCrop = "center_crop"
	// Resize scales both sides to the size without preserving the aspect ratio.
	Resize = "resize"
	// Pad does not scale: it mirrors the image at its right and lower border, without repeating the border itself, up to
	// the next multiple. It ignores the size.
	Pad = "pad"
)

// Shape returns the width and height of the result of [Fit] for an image of w by h pixels. [ErrShape]: the size is not a
// multiple, or a number is not positive.
func Shape(policy string, w, h, size, multiple int) (w2, h2 int, err error) {
	if w < 1 || h < 1 {
		return 0, 0, fmt.Errorf("fit image: %dx%d pixels, both must be positive: %w", w, h, ErrShape)
	}
	if multiple < 1 {
		return 0, 0, fmt.Errorf("fit image: multiple is %d, must be positive: %w", multiple, ErrShape)
	}
	switch policy {
	case CenterCrop, Resize:
		if size < 1 || size%multiple != 0 {
			return 0, 0, fmt.Errorf("fit image: size is %d, must be a positive multiple of %d: %w", size, multiple, ErrShape)
		}
		return size, size, nil
	case Pad:
		return roundUp(w, multiple), roundUp(h, multiple), nil
	default:
		return 0, 0, fmt.Errorf("fit image: policy is %q, must be %q, %q or %q: %w", policy, CenterCrop, Resize, Pad, ErrShape)
	}
}

// Fit converts an image to the working size and returns a new image. Scaling uses cubic convolution (a = -0.5), widened
// when shrinking to prevent aliasing, and clamped to [-1, 1]. A side that already has the right length is copied bit for
// bit. size and multiple are in pixels; see [Shape] for the result's size and the errors.
func Fit(img *Image, policy string, size, multiple int) (*Image, error) {
	if err := img.Validate(); err != nil {
		return nil, fmt.Errorf("fit image: %w", err)
	}
	w2, h2, err := Shape(policy, img.Width, img.Height, size, multiple)
	if err != nil {
		return nil, err
	}
	if policy == Pad {
		return Extend(img, w2, h2), nil
	}
	across, down := axis{in: img.Width, out: w2, n: w2}, axis{in: img.Height, out: h2, n: h2}
	if policy == CenterCrop {
		across, down = cropAxis(img.Width, img.Height, size), cropAxis(img.Height, img.Width, size)
	}
	return resample(img, across, down), nil
}

// cropAxis scales a side by size over the shorter side and selects size samples around its centre.
func cropAxis(side, other, size int) axis {
	out := size
	if side > other {
		out = max(size, int(math.Round(float64(side)*float64(size)/float64(other))))
	}
	return axis{in: side, out: out, from: (out - size) / 2, n: size}
}

func roundUp(n, multiple int) int { return (n + multiple - 1) / multiple * multiple }

// Crop returns the first w columns and h rows of an image, at least one and at most its own; the image itself if it has no more.
func Crop(img *Image, w, h int) *Image {
	w, h = max(1, min(w, img.Width)), max(1, min(h, img.Height))
	if w == img.Width && h == img.Height {
		return img
	}
	return sampled(img, w, h, func(i, _ int) int { return i })
}

// Extend mirrors an image at its right and lower border, without repeating the border itself, up to w by h pixels, which are at
// least its own.
func Extend(img *Image, w, h int) *Image { return sampled(img, w, h, mirror) }

// ExtendWhole crops an image to w by h pixels, or mirrors it at its right and lower border with the border repeated, so that blocks of pixels
// which end there have mirrored blocks beside them.
func ExtendWhole(img *Image, w, h int) *Image {
	return sampled(img, w, h, func(i, n int) int {
		if i %= 2 * n; i >= n {
			return 2*n - 1 - i
		}
		return i
	})
}

// sampled returns w by h pixels of an image. at returns the row or column of the image, which has n, for row or column i.
func sampled(img *Image, w, h int, at func(i, n int) int) *Image {
	out := New(img.Channels, h, w)
	cols := make([]int, w)
	for x := range cols {
		cols[x] = at(x, img.Width)
	}
	for c := range img.Channels {
		src, dst := img.Plane(c), out.Plane(c)
		for y := range h {
			row := src[at(y, img.Height)*img.Width:][:img.Width]
			for x, from := range cols {
				dst[y*w+x] = row[from]
			}
		}
	}
	return out
}

// mirror reflects an index beyond n repeatedly into 0..n-1.
func mirror(i, n int) int {
	if n == 1 {
		return 0
	}
	period := 2 * (n - 1)
	if i %= period; i >= n {
		return period - i
	}
	return i
}

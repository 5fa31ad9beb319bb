package metric

import "errors"

var (
	// ErrShape: two inputs differ in size, or an input is empty.
	ErrShape = errors.New("shape mismatch")
	// ErrTooSmall: an image is smaller than the window of [SSIM].
	ErrTooSmall = errors.New("image smaller than the SSIM window")
)

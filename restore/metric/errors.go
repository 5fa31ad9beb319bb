package metric

import "errors"

var (
	// ErrShape means that two inputs differ in size, or that an input is empty.
	ErrShape = errors.New("shape mismatch")
	// ErrTooSmall means that an image is smaller than the window of [SSIM].
	ErrTooSmall = errors.New("image smaller than the SSIM window")
)

package raster

import (
	"errors"

	"ddiff/restore/raster/container"
)

var (
	// ErrFormat: the data are damaged, or not a supported image or array.
	ErrFormat = container.ErrFormat
	// ErrTruncated: the file ends too early.
	ErrTruncated = container.ErrTruncated
	// ErrTooLarge: the file, or the size in its header, exceeds a limit. Nothing of that size has been allocated.
	ErrTooLarge = errors.New("too large")
	// ErrNotFinite: a value is NaN or infinite. See [Finite].
	ErrNotFinite = errors.New("value is not finite")
	// ErrShape: sizes do not match, of a buffer and its shape, or of a working size and its multiple.
	ErrShape = errors.New("shape mismatch")
)

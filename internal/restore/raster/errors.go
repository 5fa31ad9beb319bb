package raster

import (
	"ddiff/internal/failure"
	"ddiff/internal/restore/raster/metadata"
)

var (
	// ErrFormat: the data are damaged, or not a supported image or array.
	ErrFormat = metadata.ErrFormat
	// ErrTruncated: the file ends too early.
	ErrTruncated = metadata.ErrTruncated
	// ErrTooLarge: the file, or the size in its header, exceeds a limit. Nothing of that size has been allocated.
	ErrTooLarge = failure.New(failure.Input, "too large")
	// ErrNotFinite: a value is NaN or infinite. See [Finite].
	ErrNotFinite = failure.New(failure.Input, "value is not finite")
	// ErrShape: sizes do not match, of a buffer and its shape, or of a working size and its multiple.
	ErrShape = failure.New(failure.Input, "shape mismatch")
)

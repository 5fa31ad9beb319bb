package raster

import "errors"

var (
	// ErrFormat means that the bytes are not an image or array of a kind that is read
	// here, or that they are damaged.
	ErrFormat = errors.New("unsupported or damaged data")
	// ErrTruncated means that the file ends too early.
	ErrTruncated = errors.New("truncated data")
	// ErrTooLarge means that the size in the header, or the file itself, exceeds a
	// limit. Nothing of that size has been allocated.
	ErrTooLarge = errors.New("too large")
	// ErrNotFinite means that values hold a NaN or an infinity. See [Finite].
	ErrNotFinite = errors.New("value is not finite")
	// ErrShape means that sizes do not go together: a buffer and its shape, or a
	// working size and the multiple it must obey.
	ErrShape = errors.New("shape mismatch")
)

package raster

import "fmt"

// Defaults of [Limits].
const (
	DefaultMaxPixels = 64 << 20  // 64 Mi pixels, such as 8192x8192
	DefaultMaxBytes  = 512 << 20 // 512 MiB
)

// Limits bound the input of [Decode]. The zero value selects the defaults.
type Limits struct {
	// MaxPixels is the largest width times height. Default: [DefaultMaxPixels]. Decoding needs up to about 32 bytes of
	// memory per pixel.
	MaxPixels int
	// MaxBytes is the largest size of the file. Default: [DefaultMaxBytes].
	MaxBytes int
}

// Validate returns an error that names the first field out of range.
func (l Limits) Validate() error {
	if l.MaxPixels < 0 {
		return fmt.Errorf("limit MaxPixels is %d, must be positive, or 0 for the default", l.MaxPixels)
	}
	if l.MaxBytes < 0 {
		return fmt.Errorf("limit MaxBytes is %d, must be positive, or 0 for the default", l.MaxBytes)
	}
	return nil
}

// withDefaults replaces zeros by the defaults.
func (l Limits) withDefaults() Limits {
	if l.MaxPixels == 0 {
		l.MaxPixels = DefaultMaxPixels
	}
	if l.MaxBytes == 0 {
		l.MaxBytes = DefaultMaxBytes
	}
	return l
}

// checkBytes compares the size of a file with MaxBytes.
func (l Limits) checkBytes(n int) error {
	if n > l.MaxBytes {
		return fmt.Errorf("file of %d bytes, the limit is %d bytes: %w", n, l.MaxBytes, ErrTooLarge)
	}
	return nil
}

// checkPixels compares a header's size with MaxPixels, without overflow.
func (l Limits) checkPixels(width, height int) error {
	if width > l.MaxPixels/height {
		return fmt.Errorf("%dx%d pixels, the limit is %d pixels: %w", width, height, l.MaxPixels, ErrTooLarge)
	}
	return nil
}

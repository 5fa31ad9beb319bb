// Package container reads and writes the parts of picture files beside their pixels: chunks of PNG and WebP, segments of JPEG. It does not decode
// pixels, and checks every length against the bytes of the file.
package container

import "errors"

var (
	// ErrFormat: the data are damaged, or have another format.
	ErrFormat = errors.New("unsupported or damaged data")
	// ErrTruncated: the file ends too early.
	ErrTruncated = errors.New("truncated data")
)

package metadata

import (
	"ddiff/internal/failure"
)

var (
	// ErrFormat: the data are damaged, or have another format.
	ErrFormat = failure.New(failure.Input, "unsupported or damaged data")
	// ErrTruncated: the file ends too early.
	ErrTruncated = failure.New(failure.Input, "truncated data")
)

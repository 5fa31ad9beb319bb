package job

import (
	"errors"
	"fmt"
)

// ErrInput: the item's own data cannot be restored; a retry would not help.
var ErrInput = errors.New("input")

// ErrUnsupported: this version of ddiff cannot process the item; another version may.
var ErrUnsupported = errors.New("this worker cannot process the campaign")

// ErrDigest: the bytes of a file differ from the campaign's. The file may have changed, or this worker read it wrong.
var ErrDigest = fmt.Errorf("%w", ErrInput)

// ErrMemory: solving the item needs more memory than this worker permits. A machine with more memory may restore it.
var ErrMemory = errors.New("needs too much memory")

// Unsupported marks an error as an ErrUnsupported.
func Unsupported(err error) error {
	return fmt.Errorf("%w: %w; update ddiff on this worker", ErrUnsupported, err)
}

// InputError marks an error as an input error.
func InputError(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInput, fmt.Errorf(format, args...))
}

// SourceError is an error of reading a file of a dataset. Its text is that of the cause.
type SourceError struct{ Err error }

func (e SourceError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e SourceError) Unwrap() error { return e.Err }

// FromSource reports whether an error comes from the files of a dataset.
func FromSource(err error) bool {
	var s SourceError
	return errors.As(err, &s)
}

package storage

import (
	"errors"
	"fmt"
	"syscall"

	"ddiff/internal/failure"
)

var (
	// ErrAddress: the address is invalid, has an unsupported scheme, or is a path that cannot be a directory. Open, Absolute
	// and NewDir return it.
	ErrAddress = failure.New(failure.Usage, "bad store address")
	// ErrBadKey: CheckKey refuses the key. Every method returns it.
	ErrBadKey = failure.New(failure.Input, "bad key")
	// ErrNotFound: the key has no object. Get and Stat return it.
	ErrNotFound = errors.New("not found")
	// ErrExists: the key already has an object. Create returns it.
	ErrExists = errors.New("already exists")
	// ErrTooLarge: the object exceeds the size limit of the store.
	ErrTooLarge = failure.New(failure.Output, "object too large")
	// ErrNoSpace: the disk or the quota is full. Put and Create return it and leave nothing behind.
	ErrNoSpace = failure.New(failure.Output, "no space left for the output")
	// ErrReadOnly: the file system, its permissions or the server forbid the write, or the disk fails.
	ErrReadOnly = failure.New(failure.Output, "output is not writable")
	// ErrConflict: one name would be both a file and a directory, as with the keys "a" and "a/b", or it is that of a pipe, a device or
	// a link to nowhere.
	ErrConflict = failure.New(failure.Output, "another kind of file has this name")
	// ErrLocked: another process, which the message names, has locked the directory.
	ErrLocked = failure.New(failure.Locked, "directory is in use")
)

// writeError wraps the error of a system call for writing with the matching sentinel.
func writeError(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EIO):
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return err
}

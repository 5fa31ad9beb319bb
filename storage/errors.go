package storage

import (
	"errors"
	"fmt"
	"syscall"
)

var (
	// ErrAddress is returned by Open for an address that names no store.
	ErrAddress = errors.New("bad store address")
	// ErrBadKey is returned by every method for a key that CheckKey refuses.
	ErrBadKey = errors.New("bad key")
	// ErrNotFound is returned by Get and Stat for a key without an object.
	ErrNotFound = errors.New("not found")
	// ErrExists is returned by Create when the key has an object already.
	ErrExists = errors.New("already exists")
	// ErrTooLarge is returned when an object is larger than the store's limit.
	ErrTooLarge = errors.New("object too large")
	// ErrNoSpace is returned by Put and Create when the disk or the quota is full.
	// Nothing of the object is left behind.
	ErrNoSpace = errors.New("no space left for the output")
	// ErrReadOnly is returned by a write that the file system or its permissions forbid.
	ErrReadOnly = errors.New("output is not writable")
	// ErrConflict is returned by Dir when one key would have to be both a file and a
	// directory, as with "a" and "a/b".
	ErrConflict = errors.New("a file and a directory of the same name")
	// ErrLocked is returned by AcquireLock while another process holds the directory.
	// The message names the process.
	ErrLocked = errors.New("directory is in use")
)

// writeError puts the sentinel that fits in front of an error of a writing system call.
func writeError(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return err
}

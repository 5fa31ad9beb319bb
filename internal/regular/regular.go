// Package regular reads and replaces regular files. It refuses directories, pipes, devices and sockets before it opens them, since
// reading them may block or never end, and files above a size limit before it reads them.
package regular

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"syscall"

	"ddiff/internal/failure"
)

// NoLimit is the limit of a file that the caller reads in pieces.
const NoLimit int64 = math.MaxInt64

// MaxConfigBytes is the limit of files that people write or programs generate for configuration, such as certificates.
const MaxConfigBytes int64 = 1 << 20

var (
	// ErrKind: the path names a directory, pipe, device or socket.
	ErrKind = failure.New(failure.Input, "not a regular file")
	// ErrTooLarge: the file has more bytes than the limit.
	ErrTooLarge = failure.New(failure.Input, "file is too large")
)

// Open opens a regular file of at most limit bytes for reading and returns its size. It follows symbolic links. Errors are
// *fs.PathError with ErrKind, ErrTooLarge or the error of the file system.
func Open(path string, limit int64) (*os.File, int64, error) {
	return open(path, limit, os.Stat, os.OpenFile)
}

func open(
	path string, limit int64, stat func(path string) (fs.FileInfo, error), openFile func(path string, flag int, mode fs.FileMode) (*os.File, error),
) (*os.File, int64, error) {
	info, err := stat(path)
	if err != nil {
		if failed, ok := errors.AsType[*fs.PathError](err); ok {
			err = pathError(failed.Path, failed.Err) // with the operation "open"
		}
		return nil, 0, err
	}
	// Opening a device may have effects, such as rewinding a tape.
	if err := check(path, info, limit); err != nil {
		return nil, 0, err
	}
	// Another process may replace the file by a pipe now. With O_NONBLOCK opening it does not block.
	f, err := openFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	if info, err = f.Stat(); err == nil {
		err = check(path, info, limit)
	}
	if err != nil {
		f.Close() // opened for reading
		return nil, 0, err
	}
	return f, info.Size(), nil
}

func check(path string, info fs.FileInfo, limit int64) error {
	if kind := kindOf(info.Mode()); kind != "" {
		return pathError(path, fmt.Errorf("%w but a %s", ErrKind, kind))
	}
	if info.Size() > limit {
		return tooLarge(path, info.Size(), limit)
	}
	return nil
}

// kindOf names the kind of a file, empty for a regular file.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return ""
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	case mode&fs.ModeDevice != 0:
		return "device"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeSymlink != 0:
		return "link"
	}
	return "special file"
}

func pathError(path string, err error) error { return &fs.PathError{Op: "open", Path: path, Err: err} }

func tooLarge(path string, size, limit int64) error {
	return pathError(path, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, size, limit))
}

// Read returns the contents of a regular file of at most limit bytes. Errors are those of Open.
func Read(path string, limit int64) ([]byte, error) {
	return ReadChecked(path, limit, func([]byte, int64) error { return nil })
}

// BeginningBytes is the number of bytes that ReadChecked passes to its check, fewer only of shorter files.
const BeginningBytes = 32

// ReadChecked reads as Read does, but calls check with the beginning and the size of the file before it reads the rest.
// Errors are those of Open and of check.
func ReadChecked(path string, limit int64, check func(beginning []byte, size int64) error) ([]byte, error) {
	f, size, err := Open(path, limit)
	if err != nil {
		return nil, err
	}
	defer f.Close() // opened for reading
	beginning := make([]byte, BeginningBytes)
	n, err := f.ReadAt(beginning, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := check(beginning[:n], size); err != nil {
		return nil, err
	}
	return readAll(f, path, size, limit)
}

// OpenIn opens a regular file in a folder as Open does, but follows no link: a link is ErrKind.
func OpenIn(folder *os.Root, name string, limit int64) (*os.File, int64, error) {
	return open(name, limit, folder.Lstat, folder.OpenFile)
}

// ReadIn returns the contents of a regular file of at most limit bytes in a folder. Errors are those of OpenIn.
func ReadIn(folder *os.Root, name string, limit int64) ([]byte, error) {
	f, size, err := OpenIn(folder, name, limit)
	if err != nil {
		return nil, err
	}
	defer f.Close() // opened for reading
	return readAll(f, name, size, limit)
}

func readAll(f *os.File, path string, size, limit int64) ([]byte, error) {
	var buf bytes.Buffer
	buf.Grow(int(size) + bytes.MinRead)
	// Files of the kernel state the size 0, and others may grow.
	if _, err := buf.ReadFrom(io.LimitReader(f, max(limit, limit+1))); err != nil {
		return nil, err
	}
	if int64(buf.Len()) > limit {
		return nil, tooLarge(path, int64(buf.Len()), limit)
	}
	return buf.Bytes(), nil
}

// Digest returns the SHA-256 of a regular file of at most limit bytes, in lower-case hex, without holding the file in
// memory. Errors are those of Open.
func Digest(path string, limit int64) (string, error) {
	f, size, err := Open(path, limit)
	if err != nil {
		return "", err
	}
	defer f.Close() // opened for reading
	sum := sha256.New()
	// Bytes that are appended meanwhile belong to another version of the file.
	if _, err := io.Copy(sum, io.LimitReader(f, size)); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

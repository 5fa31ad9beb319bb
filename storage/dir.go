package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"ddiff/internal/regular"
)

// staleAfter is the age at which a temporary file counts as the leftover of a dead process. A write that takes as long, because
// its process was suspended, starts again.
const staleAfter = time.Hour

// Dir stores one file per key below a directory. NewDir opens it. Several processes may share a directory.
//
// A write creates a temporary file below ".tmp" of the directory, syncs it to disk, moves it to its final name and
// syncs the directory entry. A successful write therefore survives a power failure, and a failed write leaves
// nothing to read. On a disk that syncs, the rate of writes is bound by these two flushes per object, which
// concurrent writers share.
type Dir struct {
	// MaxBytes limits the size of an object; 0 means DefaultMaxBytes. Set it before the first call.
	MaxBytes int64

	root string
	// swept is done before the first write.
	swept sync.Once
}

var _ Store = (*Dir)(nil)

// NewDir opens the store in a directory, which it creates if it is missing. It writes nothing else: a directory on a read-only disk can
// be opened for reading. The first write removes the leftovers of dead writers of this user that are older than an hour.
func NewDir(path string) (*Dir, error) {
	root, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	if err := os.MkdirAll(root, 0o755); errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil, fmt.Errorf("open store %s: %w: no directory can be made there: %w", path, ErrReadOnly, err) // as in /proc
	} else if err != nil {
		return nil, fmt.Errorf("open store %s: %w", path, pathError(writeError(err)))
	}
	if _, err := os.ReadDir(root); err != nil {
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	return &Dir{root: root}, nil
}

// pathError wraps the error of a system call with ErrAddress if the path itself cannot be a directory: a chain of links
// without an end, a link to nothing, or a name that is too long.
func pathError(err error) error {
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %w", ErrAddress, err)
	}
	return err
}

func (d *Dir) temp() string { return filepath.Join(d.root, tempElement) }

func (d *Dir) file(key string) string { return filepath.Join(d.root, filepath.FromSlash(key)) }

// Get implements Store.
func (d *Dir) Get(ctx context.Context, key string) ([]byte, error) {
	if err := begin(ctx, "get", key); err != nil {
		return nil, err
	}
	data, err := d.read(d.file(key))
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	return data, nil
}

func (d *Dir) read(name string) ([]byte, error) {
	data, err := regular.Read(name, cmp.Or(d.MaxBytes, DefaultMaxBytes))
	switch {
	case errors.Is(err, regular.ErrKind):
		return nil, ErrNotFound
	case errors.Is(err, regular.ErrTooLarge):
		return nil, fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	return data, readError(err)
}

// Stat implements Store.
func (d *Dir) Stat(ctx context.Context, key string) (Info, error) {
	if err := begin(ctx, "stat", key); err != nil {
		return Info{}, err
	}
	info, err := os.Stat(d.file(key))
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotFound
	}
	if err != nil {
		return Info{}, fmt.Errorf("stat %s: %w", key, readError(err))
	}
	return Info{Key: key, Size: info.Size(), Modified: info.ModTime()}, nil
}

// Delete implements Store. It also removes the directories that are empty then.
func (d *Dir) Delete(ctx context.Context, key string) error {
	if err := begin(ctx, "delete", key); err != nil {
		return err
	}
	name := d.file(key)
	if info, err := os.Lstat(name); err == nil && info.IsDir() {
		return nil // not an object; os.Remove would remove an empty directory
	}
	err := os.Remove(name)
	if err == nil {
		err = syncDir(filepath.Dir(name))
	}
	if err != nil && !errors.Is(readError(err), ErrNotFound) {
		return fmt.Errorf("delete %s: %w", key, writeError(err))
	}
	for dir := path.Dir(key); dir != "."; dir = path.Dir(dir) {
		// Unlike os.Remove, it leaves a link to a directory.
		if err := syscall.Rmdir(d.file(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			break // in use
		}
	}
	return nil
}

// readError maps the errors of opening a missing file to ErrNotFound.
func readError(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return ErrNotFound
	}
	return err
}

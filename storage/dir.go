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
// Nobody who may write below the directory leads a call elsewhere: no link is followed there. Get and Stat do not find a link, List
// skips it, Delete leaves it, and a write returns ErrConflict. The directory itself may be a link.
//
// A write creates a temporary file below ".tmp" of the directory, syncs it to disk, moves it to its final name and
// syncs the directory entry, and at the first use of a folder those above it. A successful write therefore survives a power failure, and a failed write leaves
// nothing to read. On a disk that syncs, the rate of writes is bound by these two flushes per object, which
// concurrent writers share.
type Dir struct {
	// MaxBytes limits the size of an object; 0 means DefaultMaxBytes. Set it before the first call.
	MaxBytes int64

	path string
	// swept is done before the first write.
	swept sync.Once
	// synced are the folders that survive a power failure.
	synced regular.Synced
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
	d := &Dir{path: root}
	if err := d.in(".", func(folder *os.Root) error {
		_, err := fs.ReadDir(folder.FS(), ".")
		return err
	}); err != nil {
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	return d, nil
}

// pathError wraps the error of a system call with ErrAddress if the path itself cannot be a directory: a chain of links
// without an end, a link to nothing, or a name that is too long.
func pathError(err error) error {
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %w", ErrAddress, err)
	}
	return err
}

// root opens the directory. Each call does, because the directory of a disk that is mounted again is another one.
func (d *Dir) root() (*os.Root, error) { return os.OpenRoot(d.path) }

// in calls use with the folder at a path below the directory. The error wraps fs.ErrNotExist or ENOTDIR if there is none.
func (d *Dir) in(dir string, use func(folder *os.Root) error) error {
	root, err := d.root()
	if err != nil {
		return err
	}
	defer root.Close() // opened for reading
	folder, err := regular.OpenFolder(root, dir)
	if err != nil {
		return err
	}
	defer folder.Close() // opened for reading
	return use(folder)
}

// Get implements Store.
func (d *Dir) Get(ctx context.Context, key string) ([]byte, error) {
	if err := begin(ctx, "get", key); err != nil {
		return nil, err
	}
	var data []byte
	err := d.in(path.Dir(key), func(folder *os.Root) (err error) {
		data, err = regular.ReadIn(folder, path.Base(key), cmp.Or(d.MaxBytes, DefaultMaxBytes))
		return err
	})
	switch {
	case errors.Is(err, regular.ErrKind):
		err = ErrNotFound
	case errors.Is(err, regular.ErrTooLarge):
		err = fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, readError(err))
	}
	return data, nil
}

// Stat implements Store.
func (d *Dir) Stat(ctx context.Context, key string) (Info, error) {
	if err := begin(ctx, "stat", key); err != nil {
		return Info{}, err
	}
	info, err := d.lstat(key)
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotFound
	}
	if err != nil {
		return Info{}, fmt.Errorf("stat %s: %w", key, readError(err))
	}
	return Info{Key: key, Size: info.Size(), Modified: info.ModTime()}, nil
}

// lstat describes the file of a key, of any kind.
func (d *Dir) lstat(key string) (info fs.FileInfo, err error) {
	err = d.in(path.Dir(key), func(folder *os.Root) (err error) {
		info, err = folder.Lstat(path.Base(key))
		return err
	})
	return info, err
}

// Delete implements Store. It also removes the directories that are empty then.
func (d *Dir) Delete(ctx context.Context, key string) error {
	if err := begin(ctx, "delete", key); err != nil {
		return err
	}
	err := d.remove(key, fs.FileMode.IsRegular)
	if err != nil && !errors.Is(readError(err), ErrNotFound) {
		return fmt.Errorf("delete %s: %w", key, writeError(err))
	}
	for dir := path.Dir(key); dir != "."; dir = path.Dir(dir) {
		if err := d.remove(dir, fs.FileMode.IsDir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			break // in use
		}
		d.synced.Forget(dir)
	}
	return nil
}

// remove removes a file or an empty folder, if its mode is wanted.
func (d *Dir) remove(key string, wanted func(mode fs.FileMode) bool) error {
	return d.in(path.Dir(key), func(folder *os.Root) error {
		info, err := folder.Lstat(path.Base(key))
		if err != nil {
			return err
		}
		if !wanted(info.Mode()) {
			return fs.ErrNotExist // not an object
		}
		if err := folder.Remove(path.Base(key)); err != nil || info.IsDir() {
			return err
		}
		return regular.SyncFolder(folder)
	})
}

// readError maps the errors of opening a missing file to ErrNotFound.
func readError(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return ErrNotFound
	}
	return err
}

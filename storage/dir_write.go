package storage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"ddiff/internal/regular"
)

// Put implements Store. It renames the temporary file over the old file.
func (d *Dir) Put(ctx context.Context, key string, data []byte) error {
	return d.write(ctx, "put", key, data, rename)
}

// Create implements Store. It links the temporary file to its final name; the kernel lets exactly one of several
// links succeed. The file system must support hard links.
func (d *Dir) Create(ctx context.Context, key string, data []byte) error {
	if err := begin(ctx, "create", key); err != nil {
		return err
	}
	// Skip the expensive write if the object exists.
	if info, err := os.Lstat(d.file(key)); err == nil && !info.IsDir() {
		// Get cannot read a pipe, a device or a link to nowhere, so that nobody would find the object that exists.
		if info, err = os.Stat(d.file(key)); err != nil || !info.Mode().IsRegular() {
			return fmt.Errorf("create %s: %w: not a regular file; remove it", key, ErrConflict)
		}
		return fmt.Errorf("create %s: %w", key, ErrExists)
	}
	return d.write(ctx, "create", key, data, link)
}

// rename moves the file to a name and replaces a file of that name.
func rename(temp, name string) error {
	return directoryError(os.Rename(temp, name), name)
}

// link adds a name, which must be free, to the file; write removes the first name.
func link(temp, name string) error {
	err := directoryError(os.Link(temp, name), name)
	if errors.Is(err, fs.ErrExist) {
		return ErrExists
	}
	return err
}

// directoryError turns "exists" into "is a directory" if name is a directory.
func directoryError(err error, name string) error {
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, statErr := os.Lstat(name); statErr == nil && info.IsDir() {
		return &os.PathError{Op: "write", Path: name, Err: syscall.EISDIR}
	}
	return err
}

// removals is the number of attempts at a write whose directory Delete, or whose temporary file another writer, removes meanwhile.
const removals = 100

// write stores data in a temporary file, which publish moves to the key's file. It creates directories only after
// the bytes are on disk: a full disk leaves nothing behind.
func (d *Dir) write(ctx context.Context, action, key string, data []byte, publish func(temp, name string) error) error {
	if err := begin(ctx, action, key); err != nil {
		return err
	}
	if err := checkSize(int64(len(data)), d.MaxBytes); err != nil {
		return fmt.Errorf("%s %s: %w", action, key, err)
	}
	name := d.file(key)
	var err error
	for range removals {
		if err = d.writeOnce(ctx, name, data, publish); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err == nil {
		if err = syncDir(filepath.Dir(name)); errors.Is(err, fs.ErrNotExist) {
			err = nil // the object was deleted since
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", action, key, writeError(err))
	}
	return nil
}

// writeOnce is an attempt at a write. It returns fs.ErrNotExist if the directory or the temporary file was removed.
func (d *Dir) writeOnce(ctx context.Context, name string, data []byte, publish func(temp, name string) error) error {
	temp, err := d.writeTemp(data)
	if err != nil {
		return err
	}
	defer os.Remove(temp) //nolint:errcheck // gone after a rename; otherwise a later writer removes it
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := makeDirs(filepath.Dir(name)); err != nil {
		return err
	}
	return publish(temp, name)
}

// writeTemp writes and syncs a new temporary file and returns its name. It leaves no file behind on failure.
func (d *Dir) writeTemp(data []byte) (string, error) {
	if err := os.Mkdir(d.temp(), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	d.swept.Do(func() { d.removeStale(time.Now().Add(-staleAfter)) })
	name := filepath.Join(d.temp(), tempPrefix+rand.Text())
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		os.Remove(name) //nolint:errcheck // best effort; the write error is returned
		return "", err
	}
	return name, nil
}

// tempPrefix begins the name of a temporary file; rand.Text is the rest of it.
const tempPrefix = "ddiff-"

var tempName = regexp.MustCompile(`^` + tempPrefix + `[A-Z2-7]{26,}$`)

// removeStale removes temporary files of this program and user last written before the given time. It is best effort: a remaining file
// only costs space, and the next writer retries.
func (d *Dir) removeStale(before time.Time) {
	root, err := os.OpenRoot(d.root)
	if err != nil {
		return
	}
	defer root.Close() // opened for reading
	temp, err := regular.OpenFolder(root, tempElement)
	if err != nil {
		return
	}
	defer temp.Close() // opened for reading
	entries, err := fs.ReadDir(temp.FS(), ".")
	if err != nil {
		return
	}
	for _, entry := range entries {
		if !tempName.MatchString(entry.Name()) {
			continue
		}
		info, err := temp.Lstat(entry.Name())
		if err == nil && info.Mode().IsRegular() && regular.IsOwn(info) && info.ModTime().Before(before) {
			temp.Remove(entry.Name()) //nolint:errcheck // best effort
		}
	}
}

// makeDirs is os.MkdirAll that also syncs the new entries. It returns ENOTDIR where a file has the name of a directory.
func makeDirs(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return &os.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(dir)
	if err := makeDirs(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); errors.Is(err, fs.ErrExist) {
		return makeDirs(dir) // another writer created it, or a file of that name
	} else if err != nil {
		return err
	}
	return syncDir(parent)
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close() // opened for reading
	// EINVAL: the file system cannot sync directories.
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

package storage

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Put implements Store: the temporary file is renamed over the old one.
func (d *Dir) Put(ctx context.Context, key string, data []byte) error {
	return d.writeBytes(ctx, "put", key, data, rename)
}

// Create implements Store: the temporary file is linked to its name, which the kernel does
// for exactly one of many. The file system must have hard links.
func (d *Dir) Create(ctx context.Context, key string, data []byte) error {
	if err := begin(ctx, "create", key); err != nil {
		return err
	}
	// Writing the bytes is the expensive part: spare it when the outcome is known.
	if info, err := os.Lstat(d.file(key)); err == nil && !info.IsDir() {
		return fmt.Errorf("create %s: %w", key, ErrExists)
	}
	return d.writeBytes(ctx, "create", key, data, link)
}

// rename moves the file to a name that may be taken by another file.
func rename(temp, name string) error {
	return inTheWay(os.Rename(temp, name), name)
}

// link gives the file a second name that must be free; write removes the first.
func link(temp, name string) error {
	err := inTheWay(os.Link(temp, name), name)
	if errors.Is(err, fs.ErrExist) {
		return ErrExists
	}
	return err
}

// inTheWay turns "exists" into "is a directory" when that is what has the name.
func inTheWay(err error, name string) error {
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, statErr := os.Lstat(name); statErr == nil && info.IsDir() {
		return &os.PathError{Op: "write", Path: name, Err: syscall.EISDIR}
	}
	return err
}

// writeBytes is write of an object within the size limit.
func (d *Dir) writeBytes(ctx context.Context, action, key string, data []byte, publish func(temp, name string) error) error {
	if err := checkSize(int64(len(data)), d.MaxBytes); err != nil {
		return fmt.Errorf("%s %s: %w", action, key, err)
	}
	return d.write(ctx, action, key, bytes.NewReader(data), publish)
}

// write brings data to the key's file through a temporary file, which publish gives its
// name. Directories are made only after the bytes are on disk, so that a full disk leaves
// nothing at all.
func (d *Dir) write(ctx context.Context, action, key string, data io.Reader, publish func(temp, name string) error) error {
	if err := begin(ctx, action, key); err != nil {
		return err
	}
	temp, err := d.writeTemp(data)
	if err != nil {
		return fmt.Errorf("%s %s: %w", action, key, writeError(err))
	}
	defer os.Remove(temp) //nolint:errcheck // gone after a rename; else NewDir removes it later
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: %w", action, key, err)
	}
	name := d.file(key)
	if err := makeDirs(filepath.Dir(name)); err != nil {
		return fmt.Errorf("%s %s: %w", action, key, writeError(err))
	}
	if err := publish(temp, name); err != nil {
		return fmt.Errorf("%s %s: %w", action, key, writeError(err))
	}
	if err := syncDir(filepath.Dir(name)); err != nil {
		return fmt.Errorf("%s %s: %w", action, key, writeError(err))
	}
	return nil
}

// writeTemp writes and syncs a new temporary file and returns its name. When it fails the
// file is gone.
func (d *Dir) writeTemp(data io.Reader) (string, error) {
	if err := os.Mkdir(d.temp(), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	name := filepath.Join(d.temp(), rand.Text())
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(f, data)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		os.Remove(name) //nolint:errcheck // the write's error is the one to tell
		return "", err
	}
	return name, nil
}

// makeDirs is os.MkdirAll that also syncs the entries it makes. A file in the way gives
// ENOTDIR.
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
		return makeDirs(dir) // somebody else made it, or a file, at the same time
	} else if err != nil {
		return err
	}
	return syncDir(parent)
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close() // opened for reading
	// A file system that cannot sync a directory says EINVAL; there is nothing to do then.
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

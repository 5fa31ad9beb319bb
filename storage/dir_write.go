package storage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
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
	return d.write(ctx, "create", key, data, link)
}

// rename moves the file to a name and replaces a file of that name.
func rename(root *os.Root, temp, key string) error {
	return directoryError(root, root.Rename(temp, key), key)
}

// link adds a name, which must be free, to the file; write removes the first name.
func link(root *os.Root, temp, key string) error {
	err := directoryError(root, root.Link(temp, key), key)
	if errors.Is(err, fs.ErrExist) {
		return ErrExists
	}
	return err
}

// directoryError turns "exists" into "is a directory" if key is a directory.
func directoryError(root *os.Root, err error, key string) error {
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, statErr := root.Lstat(key); statErr == nil && info.IsDir() {
		return &os.PathError{Op: "write", Path: key, Err: syscall.EISDIR}
	}
	return err
}

// removals is the number of attempts at a write whose directory Delete, or whose temporary file another writer, removes meanwhile.
const removals = 100

// write stores data in a temporary file, which publish moves to the key's file. It creates directories only after
// the bytes are on disk: a full disk leaves nothing behind.
func (d *Dir) write(ctx context.Context, action, key string, data []byte, publish func(root *os.Root, temp, key string) error) error {
	if err := begin(ctx, action, key); err != nil {
		return err
	}
	if err := checkSize(int64(len(data)), d.MaxBytes); err != nil {
		return fmt.Errorf("%s %s: %w", action, key, err)
	}
	if err := d.checkName(action, key); err != nil {
		return fmt.Errorf("%s %s: %w", action, key, err)
	}
	err := fs.ErrNotExist
	for try := 0; try < removals && errors.Is(err, fs.ErrNotExist); try++ {
		err = d.writeOnce(ctx, key, data, publish)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", action, key, writeError(err))
	}
	return nil
}

// checkName returns ErrConflict if something that is no object, such as a link or a pipe, has the name of a key, and ErrExists before an
// expensive write of an object that exists.
func (d *Dir) checkName(action, key string) error {
	info, err := d.lstat(key)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		// Get cannot read it, so that nobody would find the object that exists.
		return fmt.Errorf("%w: not a regular file; remove it", ErrConflict)
	}
	if err == nil && !info.IsDir() && action == "create" {
		return ErrExists
	}
	return nil // the name is free, or the write fails
}

// writeOnce is an attempt at a write. It returns fs.ErrNotExist if the directory or the temporary file was removed.
func (d *Dir) writeOnce(ctx context.Context, key string, data []byte, publish func(root *os.Root, temp, key string) error) error {
	root, err := d.root()
	if err != nil {
		return err
	}
	defer root.Close() // its files are synced
	temp, err := d.writeTemp(root, data)
	if err != nil {
		return err
	}
	defer root.Remove(temp) //nolint:errcheck // gone after a rename; otherwise a later writer removes it
	if err := ctx.Err(); err != nil {
		return err
	}
	folder, err := d.synced.OpenMadeFolder(root, path.Dir(key))
	if err != nil {
		return err
	}
	defer folder.Close() // its files are synced
	if err := publish(root, temp, key); err != nil {
		return err
	}
	return regular.SyncFolder(folder)
}

// writeTemp writes and syncs a new temporary file and returns its path. It leaves no file behind on failure.
func (d *Dir) writeTemp(root *os.Root, data []byte) (string, error) {
	folder, err := regular.OpenMadeFolder(root, tempElement)
	if err != nil {
		return "", err
	}
	defer folder.Close() // its file is synced
	d.swept.Do(func() { removeStale(folder, time.Now().Add(-staleAfter)) })
	name := tempPrefix + rand.Text()
	f, err := folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
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
		folder.Remove(name) //nolint:errcheck // best effort; the write error is returned
		return "", err
	}
	return path.Join(tempElement, name), nil
}

// tempPrefix begins the name of a temporary file; rand.Text is the rest of it.
const tempPrefix = "ddiff-"

var tempName = regexp.MustCompile(`^` + tempPrefix + `[A-Z2-7]{26,}$`)

// removeStale removes temporary files of this program and user last written before the given time. It is best effort: a remaining file
// only costs space, and the next writer retries.
func removeStale(folder *os.Root, before time.Time) {
	entries, err := fs.ReadDir(folder.FS(), ".")
	if err != nil {
		return
	}
	for _, entry := range entries {
		if !tempName.MatchString(entry.Name()) {
			continue
		}
		info, err := folder.Lstat(entry.Name())
		if err == nil && info.Mode().IsRegular() && regular.IsOwn(info) && info.ModTime().Before(before) {
			folder.Remove(entry.Name()) //nolint:errcheck // best effort
		}
	}
}

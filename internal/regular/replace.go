package regular

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Replace writes a file with these permissions atomically and durably, see [Create].
func Replace(path string, data []byte, mode fs.FileMode) error {
	return Create(path, mode, writing(data))
}

// Create writes a file with these permissions, less the umask, atomically and durably: it writes and syncs a temporary file in the same folder, renames it
// and syncs the folder, so that a file that was written survives a loss of power. An error of write leaves the file as it was.
func Create(path string, mode fs.FileMode, write func(w io.Writer) error) error {
	return publish(path, mode, write, os.Rename)
}

// New is [Replace] for a name that is free; otherwise the error is [fs.ErrExist].
func New(path string, data []byte, mode fs.FileMode) error {
	return publish(path, mode, writing(data), link)
}

func writing(data []byte) func(w io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

func publish(path string, mode fs.FileMode, write func(w io.Writer) error, move func(from, to string) error) (err error) {
	folder := filepath.Dir(path)
	// Unlike os.CreateTemp, with the permissions of every new file.
	f, err := os.OpenFile(filepath.Join(folder, ".ddiff-"+rand.Text()+".tmp"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if gone := os.Remove(f.Name()); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}()
	if err = write(f); err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err != nil {
		return err
	}
	if err := move(f.Name(), path); err != nil {
		return err
	}
	return syncPath(folder)
}

// link gives a file a further name, which must be free.
func link(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, missing := os.Lstat(to); errors.Is(missing, fs.ErrNotExist) {
		return os.Rename(from, to) // a file system without links
	}
	return err
}

// MakeFolder creates a folder, and those above it that are missing, with entries that survive a loss of power.
func MakeFolder(path string) error {
	path = filepath.Clean(path)
	above := filepath.Dir(path)
	err := os.Mkdir(path, 0o755)
	if errors.Is(err, fs.ErrNotExist) && above != path {
		if err := MakeFolder(above); err != nil {
			return err
		}
		err = os.Mkdir(path, 0o755)
	}
	if err == nil {
		return syncPath(above)
	}
	if info, missing := os.Stat(path); missing == nil && info.IsDir() {
		return nil
	}
	if errors.Is(err, fs.ErrExist) {
		err = &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOTDIR}
	}
	return err
}

// MoveFolder gives a folder another name in its file system, which must be free, after its files and folders are on the disk. When it returns, the name is, too.
func MoveFolder(from, to string) error {
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() && !entry.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close() // opened for reading
		return syncOpen(f)
	})
	if err == nil {
		err = os.Rename(from, to)
	}
	if err != nil {
		return err
	}
	return syncPath(filepath.Dir(to))
}

// syncPath writes the entries of a folder to the disk, unless it may be written and not be read.
func syncPath(folder string) error {
	root, err := os.OpenRoot(folder)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close() // opened for reading
	return SyncFolder(root)
}

// SHA256 returns the digest of data, in lower-case hex.
func SHA256(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"ddiff/internal/regular"
)

// Lock is the exclusive use of a directory by one process: an flock on its file ".ddiff/lock". The kernel releases
// the lock at the end of the process, even after a kill.
type Lock struct {
	file *os.File
}

const (
	lockFile = "lock"
	// lockBegin begins the text of a lock file.
	lockBegin = "process "
)

// errReplaced: a file was replaced while it was opened.
var errReplaced = errors.New("the file is replaced all the time")

// AcquireLock locks the directory dir, which it creates if it is missing. It does not wait: while another process
// has the lock, the error is ErrLocked and names that process and its host. It writes to no file but a lock: ErrConflict if a link, a
// file with another name too, or a file with other text has the lock's name.
func AcquireLock(dir string) (*Lock, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, writeError(err))
	}
	err := errReplaced
	var f *os.File
	for try := 0; try < removals && errors.Is(err, errReplaced); try++ {
		f, err = lock(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, writeError(err))
	}
	return &Lock{file: f}, nil
}

// HasLock reports whether the directory has a lock file, of a live or a dead process.
func HasLock(dir string) bool {
	folder, err := stateFolder(dir, regular.OpenFolder)
	if err != nil {
		return false
	}
	defer folder.Close() // opened for reading
	info, err := folder.Lstat(lockFile)
	return err == nil && info.Mode().IsRegular()
}

func stateFolder(dir string, open func(in *os.Root, path string) (*os.Root, error)) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() // opened for reading
	return open(root, stateElement)
}

// lock opens and locks the lock file of a directory. errReplaced: another process has removed the file meanwhile.
func lock(dir string) (*os.File, error) {
	folder, err := stateFolder(dir, regular.OpenMadeFolder)
	if err != nil {
		return nil, err
	}
	defer folder.Close() // opened for reading
	f, err := openLock(folder)
	if err != nil {
		return nil, err
	}
	if err := acquire(f); err != nil {
		f.Close() // unchanged
		return nil, err
	}
	return f, nil
}

// openLock opens or creates the lock file in a folder.
func openLock(folder *os.Root) (*os.File, error) {
	info, err := folder.Lstat(lockFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f, err := folder.OpenFile(lockFile, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			return nil, errReplaced
		}
		return f, err
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, notLock("not a regular file")
	}
	// A pipe that replaces the file now does not block.
	f, err := folder.OpenFile(lockFile, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errReplaced
	}
	return f, err
}

// notLock is the error of a file that has the name of the lock file.
func notLock(why string) error {
	return fmt.Errorf("%w: %s/%s is not the lock of this program: %s; remove it", ErrConflict, stateElement, lockFile, why)
}

func acquire(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("%w by %s; wait for it, or choose another directory", ErrLocked, owner(f))
	}
	if err != nil {
		return err
	}
	if err := checkLock(f); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(fmt.Appendf(nil, "%s%d on %s\n", lockBegin, os.Getpid(), host), 0)
	return err
}

// checkLock returns an error unless f is a lock file of this program, under this name alone.
func checkLock(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return notLock("not a regular file")
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 1 {
		return notLock("the file has another name too")
	} else if ok && stat.Nlink == 0 {
		return errReplaced
	}
	buf := make([]byte, len(lockBegin))
	n, _ := f.ReadAt(buf, 0) // the file may be empty
	if n > 0 && string(buf[:n]) != lockBegin {
		return notLock("it has other text")
	}
	return nil
}

func owner(f *os.File) string {
	buf := make([]byte, 512)
	n, _ := f.ReadAt(buf, 0) // always io.EOF; the file may be empty
	if line := strings.TrimSpace(string(buf[:n])); strings.HasPrefix(line, lockBegin) {
		return line
	}
	return "another process"
}

// Unlock releases the lock. It leaves the file, since two processes could lock two files of one name otherwise.
// Unlocking twice is an error.
func (l *Lock) Unlock() error {
	if err := errors.Join(l.file.Truncate(0), l.file.Close()); err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}

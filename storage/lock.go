package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Lock is the exclusive use of a directory by one process: an flock on its file ".ddiff/lock". The kernel releases
// the lock at the end of the process, even after a kill.
type Lock struct {
	file *os.File
}

// AcquireLock locks the directory dir, which it creates if it is missing. It does not wait: while another process
// has the lock, the error is ErrLocked and names that process and its host.
func AcquireLock(dir string) (*Lock, error) {
	state := filepath.Join(dir, stateElement)
	if err := os.MkdirAll(state, 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, writeError(err))
	}
	f, err := os.OpenFile(filepath.Join(state, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, writeError(err))
	}
	if err := acquire(f); err != nil {
		f.Close() // unchanged
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return &Lock{file: f}, nil
}

// HasLock reports whether the directory has a lock file, of a live or a dead process.
func HasLock(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, stateElement, "lock"))
	return err == nil && info.Mode().IsRegular()
}

func acquire(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("%w by %s; wait for it, or choose another directory", ErrLocked, owner(f))
	}
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	if err := f.Truncate(0); err != nil {
		return writeError(err)
	}
	if _, err := f.WriteAt(fmt.Appendf(nil, "process %d on %s\n", os.Getpid(), host), 0); err != nil {
		return writeError(err)
	}
	return nil
}

func owner(f *os.File) string {
	buf := make([]byte, 512)
	n, _ := f.ReadAt(buf, 0) // always io.EOF; the file may be empty
	if line := strings.TrimSpace(string(buf[:n])); line != "" {
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

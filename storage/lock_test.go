package storage_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"ddiff/storage"
)

// lockOwnerEnv names a directory. With it, TestMain locks the directory, prints a line and waits for the end of its
// standard input.
const lockOwnerEnv = "DDIFF_TEST_LOCK_OWNER"

func TestMain(m *testing.M) {
	dir := os.Getenv(lockOwnerEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	if _, err := storage.AcquireLock(dir); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("locked")
	bufio.NewReader(os.Stdin).ReadByte() //nolint:errcheck // until the end of the input
}

func TestLockIsExclusive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock, err := storage.AcquireLock(dir)
	must(t, err)
	_, err = storage.AcquireLock(dir)
	if !errors.Is(err, storage.ErrLocked) {
		t.Fatalf("second AcquireLock = %v, want ErrLocked", err)
	}
	host, hostErr := os.Hostname()
	if hostErr != nil {
		t.Fatal(hostErr)
	}
	if owner := fmt.Sprintf("process %d on %s;", os.Getpid(), host); !strings.Contains(err.Error(), owner) {
		t.Errorf("error %q does not contain %q", err, owner)
	}
	must(t, lock.Unlock())
	lock, err = storage.AcquireLock(dir)
	if err != nil {
		t.Fatalf("AcquireLock after Unlock: %v", err)
	}
	must(t, lock.Unlock())
	if err := lock.Unlock(); err == nil {
		t.Error("second Unlock succeeds")
	}
}

func TestLockIsReleasedByKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), lockOwnerEnv+"="+dir)
	stdin, err := owner.StdinPipe()
	must(t, err)
	defer stdin.Close() // after the kill
	stdout, err := owner.StdoutPipe()
	must(t, err)
	must(t, owner.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "locked\n" {
		t.Fatalf("owner prints %q, %v", line, err)
	}
	_, err = storage.AcquireLock(dir)
	if !errors.Is(err, storage.ErrLocked) {
		t.Fatalf("AcquireLock = %v, want ErrLocked", err)
	}
	if pid := fmt.Sprintf("process %d ", owner.Process.Pid); !strings.Contains(err.Error(), pid) {
		t.Errorf("error %q does not contain %q", err, pid)
	}
	must(t, owner.Process.Kill())
	owner.Wait() //nolint:errcheck // it was killed
	lock, err := storage.AcquireLock(dir)
	if err != nil {
		t.Fatalf("AcquireLock after the owner was killed: %v", err)
	}
	must(t, lock.Unlock())
}

func TestHasLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if storage.HasLock(dir) {
		t.Error("a new directory has a lock file")
	}
	lock, err := storage.AcquireLock(dir)
	must(t, err)
	if !storage.HasLock(dir) {
		t.Error("a locked directory has no lock file")
	}
	must(t, lock.Unlock())
	if !storage.HasLock(dir) {
		t.Error("the lock file is gone after the release")
	}
	other := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(other, ".ddiff", "lock"), 0o755))
	if storage.HasLock(other) {
		t.Error("a directory counts as a lock file")
	}
}

// TestAttackLock: the lock empties no file of others, whatever has its name, and does not block.
func TestAttackLock(t *testing.T) {
	t.Parallel()
	const precious = "alias ll='ls -l'\n"
	for name, plant := range map[string]func(dir, victim string) error{
		"link":            func(dir, victim string) error { return os.Symlink(victim, filepath.Join(dir, ".ddiff", "lock")) },
		"link to nowhere": func(dir, victim string) error { return os.Symlink(victim+"-new", filepath.Join(dir, ".ddiff", "lock")) },
		"hard link":       func(dir, victim string) error { return os.Link(victim, filepath.Join(dir, ".ddiff", "lock")) },
		"file of a person": func(dir, _ string) error {
			return os.WriteFile(filepath.Join(dir, ".ddiff", "lock"), []byte(precious), 0o644)
		},
		"pipe":   func(dir, _ string) error { return syscall.Mkfifo(filepath.Join(dir, ".ddiff", "lock"), 0o666) },
		"folder": func(dir, _ string) error { return os.Mkdir(filepath.Join(dir, ".ddiff", "lock"), 0o755) },
		"link to a folder": func(dir, victim string) error {
			must(t, os.Remove(filepath.Join(dir, ".ddiff")))
			must(t, os.Rename(victim, filepath.Join(filepath.Dir(victim), "lock")))
			return os.Symlink(filepath.Dir(victim), filepath.Join(dir, ".ddiff"))
		},
	} {
		dir, home := t.TempDir(), t.TempDir()
		victim := filepath.Join(home, ".bashrc")
		must(t, os.WriteFile(victim, []byte(precious), 0o644))
		must(t, os.Mkdir(filepath.Join(dir, ".ddiff"), 0o755))
		must(t, plant(dir, victim))
		before := snapshot(t, home) + snapshot(t, dir)
		lock, err := storage.AcquireLock(dir)
		if !errors.Is(err, storage.ErrConflict) || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("%s: %v, want ErrConflict with the remedy", name, err)
		}
		if lock != nil {
			must(t, lock.Unlock())
		}
		if after := snapshot(t, home) + snapshot(t, dir); after != before {
			t.Errorf("%s: the files change from\n%s\nto\n%s", name, before, after)
		}
	}
}

// snapshot describes the files below a folder, with their text.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, path, entry.Type())
		if entry.Type().IsRegular() {
			data, err := os.ReadFile(path)
			fmt.Fprintf(&b, "%q\n", data)
			return err
		}
		return nil
	}))
	return b.String()
}

// TestLockOfRemovedFolder: a process that opened the lock file before another one removed the folder locks the new folder.
func TestLockOfRemovedFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "scratch")
	var all sync.WaitGroup
	var held atomic.Int32
	for range 8 {
		all.Go(func() {
			for range 100 {
				lock, err := storage.AcquireLock(dir)
				if errors.Is(err, storage.ErrLocked) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := held.Add(1); n > 1 {
					t.Errorf("%d processes have the lock", n)
				}
				held.Add(-1)
				os.RemoveAll(dir) //nolint:errcheck // another one creates it
				lock.Unlock()     //nolint:errcheck // the file is gone
			}
		})
	}
	all.Wait()
}

package storage_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

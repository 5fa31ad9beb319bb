package storage_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"ddiff/storage"
)

// lockHolderEnv makes TestMain a process that locks the directory it names, says so, and
// waits for its standard input to close.
const lockHolderEnv = "DDIFF_TEST_LOCK_HOLDER"

func TestMain(m *testing.M) {
	dir := os.Getenv(lockHolderEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	if _, err := storage.AcquireLock(dir); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("locked")
	bufio.NewReader(os.Stdin).ReadByte() //nolint:errcheck // waits for the end
}

func TestLockIsExclusive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock, err := storage.AcquireLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = storage.AcquireLock(dir)
	if !errors.Is(err, storage.ErrLocked) {
		t.Fatalf("second AcquireLock = %v, want ErrLocked", err)
	}
	if pid := fmt.Sprintf("process %d ", os.Getpid()); !strings.Contains(err.Error(), pid) {
		t.Errorf("the error %q does not name %q", err, pid)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	lock, err = storage.AcquireLock(dir)
	if err != nil {
		t.Fatalf("AcquireLock after Unlock: %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(); err == nil {
		t.Error("the second Unlock succeeds")
	}
}

func TestLockOfAKilledProcessIsFree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), lockHolderEnv+"="+dir)
	stdin, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close() // the process is dead by then
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "locked\n" {
		t.Fatalf("the holder says %q, %v", line, err)
	}
	_, err = storage.AcquireLock(dir)
	if !errors.Is(err, storage.ErrLocked) {
		t.Fatalf("AcquireLock = %v, want ErrLocked", err)
	}
	if pid := fmt.Sprintf("process %d ", holder.Process.Pid); !strings.Contains(err.Error(), pid) {
		t.Errorf("the error %q does not name %q", err, pid)
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	holder.Wait() //nolint:errcheck // it was killed
	lock, err := storage.AcquireLock(dir)
	if err != nil {
		t.Fatalf("AcquireLock after the holder was killed: %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
}

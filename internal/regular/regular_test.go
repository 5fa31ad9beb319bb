package regular_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ddiff/internal/regular"
)

// TestSpecialFiles: files whose reading blocks or never ends are refused by name and kind.
func TestSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for path, kind := range map[string]string{
		dir: "directory", pipe: "pipe", link: "pipe", "/dev/zero": "device", "/dev/tty": "device", socket: "socket",
	} {
		_, err := regular.Read(path, regular.MaxConfigBytes)
		if !errors.Is(err, regular.ErrKind) || !strings.Contains(err.Error(), path) || !strings.HasSuffix(err.Error(), kind) {
			t.Errorf("Read(%s) = %v, want ErrKind with path and %q", path, err, kind)
		}
		if _, err := regular.Digest(path, regular.NoLimit); !errors.Is(err, regular.ErrKind) {
			t.Errorf("Digest(%s) = %v, want ErrKind", path, err)
		}
	}
	if _, err := regular.Read(filepath.Join(dir, "none"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

// TestLimits: a file at the limit is read completely, a larger one is refused before it is read.
func TestLimits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	data := bytes.Repeat([]byte("x"), 1000)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := regular.Read(path, 1000); err != nil || !bytes.Equal(got, data) {
		t.Errorf("at the limit: %d bytes, %v", len(got), err)
	}
	if sum, err := regular.Digest(path, 1000); err != nil || sum != fmt.Sprintf("%x", sha256.Sum256(data)) {
		t.Errorf("digest %s, %v", sum, err)
	}
	for _, read := range []func() error{
		func() error { _, err := regular.Read(path, 999); return err },
		func() error { _, err := regular.Digest(path, 999); return err },
	} {
		if err := read(); !errors.Is(err, regular.ErrTooLarge) || !strings.Contains(err.Error(), "1000 bytes, at most 999") {
			t.Errorf("above the limit: %v", err)
		}
	}
	// 1 TiB without a byte on the disk.
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Skipf("the file system has no sparse files: %v", err)
	}
	if _, err := regular.Read(path, 1<<30); !errors.Is(err, regular.ErrTooLarge) {
		t.Errorf("sparse file: %v", err)
	}
}

// TestFilesOfUnknownSize: files of the kernel state the size 0. They are read, up to the limit.
func TestFilesOfUnknownSize(t *testing.T) {
	const path = "/proc/self/status"
	want, err := os.ReadFile(path)
	if err != nil {
		t.Skip("needs Linux")
	}
	if got, err := regular.Read(path, 1<<20); err != nil || len(got) < len(want)/2 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := regular.Read(path, 10); !errors.Is(err, regular.ErrTooLarge) {
		t.Errorf("above the limit: %v", err)
	}
}

package install

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTamperedLibrary: a library of the cache that has its size and other bytes is found when it changed after its
// verification, and is not read again as long as it did not.
func TestTamperedLibrary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "libonnxruntime.so.1")
	write(t, path, []byte("the library"))
	sum := sha256.Sum256([]byte("the library"))
	other := strings.Repeat("0", 2*sha256.Size)
	pinned := func(sum string) source {
		return source{Client: sum, Files: []File{{Name: filepath.Base(path), Size: 11, SHA256: sum}}}
	}
	r := release{Sources: []source{pinned(other), pinned(hex.EncodeToString(sum[:]))}}
	if s, err := r.unchanged(dir); err != nil || s.Client == other {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	must(t, err)
	// The stamp replaces the digest: equal size and time are not read again.
	write(t, path, []byte("the Library"))
	must(t, os.Chtimes(path, time.Time{}, info.ModTime()))
	if _, err := r.unchanged(dir); err != nil {
		t.Errorf("with a stamp: %v", err)
	}
	must(t, os.Chtimes(path, time.Time{}, info.ModTime().Add(time.Second)))
	for range 2 { // a mismatch is not stamped
		if _, err := r.unchanged(dir); !errors.Is(err, ErrChecksum) {
			t.Errorf("changed later: %v", err)
		}
	}
	write(t, filepath.Join(dir, stampFile), []byte("[{"))
	if _, err := r.unchanged(dir); !errors.Is(err, ErrChecksum) {
		t.Errorf("with a damaged stamp: %v", err)
	}
	write(t, path, []byte("the library"))
	if _, err := r.unchanged(dir); err != nil {
		t.Errorf("restored: %v", err)
	}
	must(t, os.Remove(path))
	if _, err := r.unchanged(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed: %v", err)
	}
}

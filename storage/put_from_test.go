package storage_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"ddiff/storage"
)

func TestPutFromWritesAboveTheSizeLimit(t *testing.T) {
	t.Parallel()
	dir, err := storage.NewDir(t.TempDir())
	must(t, err)
	dir.MaxBytes = 1000
	config := startS3(t)
	config.MaxBytes = 1000
	data := bytes.NewReader(make([]byte, 1001))
	for _, s := range []interface {
		storage.Store
		storage.PutterFrom
	}{dir, openS3(t, config)} {
		must(t, s.PutFrom(t.Context(), "a", data, data.Size()))
		if info, err := s.Stat(t.Context(), "a"); err != nil || info.Size != 1001 {
			t.Errorf("%T: %d bytes, error %v", s, info.Size, err)
		}
		if _, err := s.Get(t.Context(), "a"); !errors.Is(err, storage.ErrTooLarge) {
			t.Errorf("%T: get: %v, want ErrTooLarge", s, err)
		}
	}
}

// swept is data whose first reading takes so long that another process opens the store and removes the temporary file.
type swept struct {
	*bytes.Reader
	sweep func()
}

func (s *swept) ReadAt(p []byte, at int64) (int, error) {
	n, err := s.Reader.ReadAt(p, at)
	s.sweep()
	return n, err
}

// A write whose temporary file another process removes, because its process was suspended for long, starts again.
func TestDirWritesAgainAfterSweep(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d, err := storage.NewDir(root)
	must(t, err)
	sweeps := 0
	data := &swept{bytes.NewReader([]byte("data")), sync.OnceFunc(func() {
		files, err := filepath.Glob(filepath.Join(root, ".tmp", "*"))
		must(t, err)
		for _, f := range files {
			must(t, os.Chtimes(f, time.Time{}, time.Now().Add(-2*time.Hour)))
			sweeps++
		}
		_, err = storage.NewDir(root)
		must(t, err)
	})}
	must(t, d.PutFrom(t.Context(), "a/b", data, data.Size()))
	if got, err := d.Get(t.Context(), "a/b"); string(got) != "data" || err != nil || sweeps != 1 {
		t.Errorf("%q, error %v, after %d sweeps", got, err, sweeps)
	}
}

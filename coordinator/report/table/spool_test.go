package table

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/coordinator/report/entry"
)

// A large report names the temporary directory, with the remedy.
func TestSpoolNamesTheDirectory(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	t.Setenv("TMPDIR", missing)
	var s spool
	if _, err := s.Write(bytes.Repeat([]byte{'x'}, spoolMemory)); err != nil || s.file != nil {
		t.Errorf("%d bytes: %v, file %v", spoolMemory, err, s.file)
	}
	_, err := s.Write([]byte{'y'})
	if !errors.Is(err, entry.ErrTemporary) || !strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("error %v, want ErrTemporary with the directory and the remedy", err)
	}
}

// A spool returns the bytes that were written, in memory and in a file.
func TestSpool(t *testing.T) {
	t.Parallel()
	for _, size := range []int{10, spoolMemory, spoolMemory + 1, 3*spoolMemory + 5} {
		var s spool
		want := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
		for rest := want; len(rest) > 0; {
			n, err := s.Write(rest[:min(len(rest), 700_001)])
			if err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		got := s.memory
		if s.file != nil {
			var err error
			if got, err = io.ReadAll(io.NewSectionReader(s.file, 0, s.size)); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, want) || (s.file != nil) != (size > spoolMemory) {
			t.Errorf("%d bytes: %d read, in a file: %v", size, len(got), s.file != nil)
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}
}

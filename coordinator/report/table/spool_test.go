package table

import (
	"bytes"
	"errors"
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

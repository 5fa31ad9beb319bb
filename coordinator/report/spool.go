package report

import (
	"errors"
	"fmt"
	"os"
)

// spoolMemory is the size, in bytes, above which a spool moves to a temporary file.
const spoolMemory = 1 << 20

// spool collects the bytes of one file of the report: in memory up to spoolMemory, in a temporary file beyond.
type spool struct {
	memory []byte
	file   *os.File // nil: everything is in memory
	size   int64
}

// Write implements io.Writer. The error wraps ErrTemporary.
func (s *spool) Write(p []byte) (int, error) {
	s.size += int64(len(p))
	if s.file == nil && s.size <= spoolMemory {
		s.memory = append(s.memory, p...)
		return len(p), nil
	}
	if s.file == nil {
		var err error
		if s.file, err = tempFile(); err != nil {
			return 0, err
		}
		if _, err := s.file.Write(s.memory); err != nil {
			return 0, temporary(err)
		}
		s.memory = nil
	}
	n, err := s.file.Write(p)
	if err != nil {
		return n, temporary(err)
	}
	return n, nil
}

// close releases the temporary file.
func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// tempFile opens a temporary file without a name: closing it, or the end of the process, frees its space. The error wraps
// ErrTemporary.
func tempFile() (*os.File, error) {
	f, err := os.CreateTemp("", "ddiff-report-")
	if err != nil {
		return nil, temporary(err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(temporary(err), f.Close())
	}
	return f, nil
}

// temporary marks an error of a temporary file.
func temporary(err error) error {
	return fmt.Errorf("%w %s: %w; set TMPDIR to a directory with free space", ErrTemporary, os.TempDir(), err)
}

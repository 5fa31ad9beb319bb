package table

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"ddiff/coordinator/report/entry"
	"ddiff/coordinator/report/result"
	"ddiff/storage"
)

// StoreCSV stores results.csv.
func StoreCSV(ctx context.Context, store result.Files, c *entry.Columns, ordered iter.Seq2[*entry.Entry, error]) (err error) {
	var out spool
	defer func() { err = errors.Join(err, out.close()) }()
	if err := writeCSV(&out, c, ordered); err != nil {
		return err
	}
	var data io.ReaderAt = bytes.NewReader(out.memory)
	if out.file != nil {
		data = out.file
	}
	if err := storage.PutFrom(ctx, store, KeyCSV, data, out.size); err != nil {
		return fmt.Errorf("write %s: %w", KeyCSV, err)
	}
	return nil
}

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
		if s.file, err = entry.TempFile(); err != nil {
			return 0, err
		}
		if _, err := s.file.Write(s.memory); err != nil {
			return 0, entry.TemporaryError(err)
		}
		s.memory = nil
	}
	n, err := s.file.Write(p)
	if err != nil {
		return n, entry.TemporaryError(err)
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

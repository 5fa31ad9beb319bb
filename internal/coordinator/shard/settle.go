package shard

import (
	"context"
	"errors"
	"os"
	"time"

	"ddiff/internal/retry"
	"ddiff/manifest"
)

// errWriting is the error of a row whose file is still being written.
var errWriting = errors.New("its size or modification time still changes; append or retry when it is complete")

// look is what two looks at a file compare.
type look struct {
	size     int64
	modified time.Time
}

// lookAt returns the look of a file of this machine, or false for an address and a file that is not there.
func lookAt(path string) (l look, ok bool) {
	if path == "" || manifest.IsAddress(path) {
		return l, false
	}
	info, err := os.Stat(path)
	if err != nil {
		return l, false
	}
	return look{info.Size(), info.ModTime()}, true
}

// settle looks a second time at the files of rows that were modified in the last Config.Settle, such as one that is still empty. A file that has
// changed between the looks is the error of its row. Objects of buckets and web servers appear whole.
func (s *Sharder) settle(ctx context.Context, rows []manifest.Row) error {
	if s.cfg.Settle == 0 {
		return nil
	}
	young := map[string]look{}
	for _, row := range rows {
		for _, path := range s.files(row) {
			if l, ok := lookAt(path); ok && s.cfg.Now().Sub(l.modified) < s.cfg.Settle {
				young[path] = l
			}
		}
	}
	if len(young) == 0 {
		return nil
	}
	if err := retry.Sleep(ctx, s.cfg.Settle); err != nil {
		return err
	}
	for i, row := range rows {
		for _, path := range s.files(row) {
			first, ok := young[path]
			if second, _ := lookAt(path); ok && second != first {
				rows[i].Err = &manifest.FieldError{File: path, Err: errWriting}
			}
		}
	}
	return nil
}

// files returns the files of a row.
func (s *Sharder) files(row manifest.Row) []string {
	return append(manifest.TaskFiles(row, s.cfg.Spec), row.Image, row.Measurement, row.Overrides.Mask, row.Overrides.Kernel)
}

// Touched is a row that a window has, and whose image or measurement was modified since.
type Touched struct {
	Window   int
	Modified time.Time
	key      filesKey
}

// touched returns the row of a window read at a time, if its file was modified since. Without a time of its listing it is that of the local file.
func touched(row manifest.Row, k knownRows) (t Touched, ok bool) {
	t = Touched{Window: k.window, Modified: row.Modified, key: keyOfRow(row)}
	for _, path := range []string{row.Image, row.Measurement} {
		if l, ok := lookAt(path); ok && l.modified.After(t.Modified) {
			t.Modified = l.modified
		}
	}
	return t, t.Modified.After(k.read)
}

package storage_test

import (
	"bytes"
	"errors"
	"testing"

	"ddiff/storage"
	"ddiff/storage/s3test"
)

func TestPutFromWritesAboveTheSizeLimit(t *testing.T) {
	t.Parallel()
	dir, err := storage.NewDir(t.TempDir())
	must(t, err)
	dir.MaxBytes = 1000
	server := s3test.Start(t, s3test.Options{})
	config := server.Config(server.Bucket(t))
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

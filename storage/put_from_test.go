package storage_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"ddiff/storage"
	"ddiff/storage/s3test"
)

// interrupted is a store whose first PutFrom fails after reading part of the data.
type interrupted struct {
	*storage.Dir
	calls int
}

func (u *interrupted) PutFrom(ctx context.Context, key string, data io.ReaderAt, size int64) error {
	if u.calls++; u.calls == 1 {
		if _, err := data.ReadAt(make([]byte, 10), 0); err != nil {
			return err
		}
		return storage.ErrUnavailable
	}
	return u.Dir.PutFrom(ctx, key, data, size)
}

func TestRetryingPutFromSendsAllBytesAgain(t *testing.T) {
	t.Parallel()
	dir, err := storage.NewDir(t.TempDir())
	must(t, err)
	broken := &interrupted{Dir: dir}
	s := storage.NewRetrying(broken, storage.RetryConfig{Sleep: func(context.Context, time.Duration) error { return nil }})
	data := strings.Repeat("0123456789", 100)
	must(t, s.PutFrom(t.Context(), "a", strings.NewReader(data), int64(len(data))))
	if got, err := s.Get(t.Context(), "a"); err != nil || string(got) != data || broken.calls != 2 {
		t.Errorf("%d bytes after %d calls, error %v", len(got), broken.calls, err)
	}
}

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

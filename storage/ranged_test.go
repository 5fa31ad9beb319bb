package storage_test

import (
	"bytes"
	"errors"
	"net/http"
	"testing"
	"time"

	"ddiff/storage"
	"ddiff/storage/s3test"
)

func TestS3Ranges(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t, s3test.Options{})
	config := server.Config(server.Bucket(t))
	config.MaxBytes = 1000
	s := openS3(t, config)
	data := bytes.Repeat([]byte("0123456789"), 100)
	must(t, s.Put(t.Context(), "a/b", data))
	v, err := s.Version(t.Context(), "a/b")
	must(t, err)
	if v.Key != "a/b" || v.Size != 1000 || v.ETag == "" || v.Modified.IsZero() {
		t.Errorf("version %+v", v)
	}
	for _, tc := range []struct {
		offset, size int64
		want         []byte
	}{
		{0, 1000, data}, {0, 1, data[:1]}, {995, 5, data[995:]}, {995, 100, data[995:]}, {500, 0, nil}, {1000, 1, nil}, {5000, 10, nil},
	} {
		for _, etag := range []string{"", v.ETag} {
			got, err := s.GetRange(t.Context(), "a/b", etag, tc.offset, tc.size)
			if err != nil || !bytes.Equal(got, tc.want) {
				t.Errorf("GetRange of %d bytes from %d, etag %q = %q, %v", tc.size, tc.offset, etag, got, err)
			}
		}
	}
	for _, tc := range []struct {
		key, etag    string
		offset, size int64
		want         error
	}{
		{"a/b", "another", 0, 1, storage.ErrChanged}, {"a/c", "", 0, 1, storage.ErrNotFound}, {"../a", "", 0, 1, storage.ErrBadKey},
		{"a/b", "", 0, 1001, storage.ErrTooLarge},
	} {
		if _, err := s.GetRange(t.Context(), tc.key, tc.etag, tc.offset, tc.size); !errors.Is(err, tc.want) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
	if _, err := s.GetRange(t.Context(), "a/b", "", -1, 1); err == nil {
		t.Error("GetRange with a negative offset succeeds")
	}
	if _, err := s.Version(t.Context(), "a/c"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Version of a missing object = %v, want ErrNotFound", err)
	}
	must(t, s.Put(t.Context(), "a/b", data[:10]))
	if _, err := s.GetRange(t.Context(), "a/b", v.ETag, 0, 1); !errors.Is(err, storage.ErrChanged) {
		t.Errorf("GetRange after a change = %v, want ErrChanged", err)
	}
}

func TestRetryingRanges(t *testing.T) {
	t.Parallel()
	p := startProxied(t)
	must(t, openS3(t, p.direct).Put(t.Context(), "k", []byte("0123456789")))
	r, err := storage.NewRetrying(openS3(t, p.config), storage.RetryConfig{Base: time.Millisecond})
	must(t, err)
	n := 0
	p.set(func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if n++; n%2 == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		forward.ServeHTTP(w, r)
	})
	v, err := r.Version(t.Context(), "k")
	must(t, err)
	if got, err := r.GetRange(t.Context(), "k", v.ETag, 3, 4); err != nil || string(got) != "3456" || n != 4 {
		t.Errorf("%q after %d requests, error %v", got, n, err)
	}
	other, err := storage.NewRetrying(newDir(t, t.TempDir()), storage.RetryConfig{})
	must(t, err)
	if _, err := other.GetRange(t.Context(), "k", "", 0, 1); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("store without ranges: %v, want ErrUnsupported", err)
	}
	if _, err := other.Version(t.Context(), "k"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("store without ranges: %v, want ErrUnsupported", err)
	}
}

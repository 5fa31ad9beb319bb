package storage_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"ddiff/internal/s3test"
	"ddiff/storage"
)

func TestS3Corruption(t *testing.T) {
	t.Parallel()
	flip := func(body []byte) []byte {
		body = bytes.Clone(body)
		body[len(body)/2] ^= 1
		return body
	}
	data := randomBytes(100_000, 3)

	t.Run("on the way down", func(t *testing.T) {
		t.Parallel()
		p := startProxied(t)
		s := openS3(t, p.config)
		must(t, s.Put(t.Context(), "k", data))
		p.set(changeAnswer(flip))
		_, err := s.Get(t.Context(), "k")
		wantError(t, "Get", err, storage.ErrCorrupt)
		p.set(changeAnswer(func(body []byte) []byte { return body[:len(body)/2] }))
		_, err = s.Get(t.Context(), "k")
		wantError(t, "Get of half an object", err, storage.ErrUnavailable)
		p.set(pass)
		wantGet(t, s, "k", data)
	})
	t.Run("on the way up", func(t *testing.T) {
		t.Parallel()
		p := startProxied(t)
		s := openS3(t, p.config)
		p.set(func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
			body, err := io.ReadAll(r.Body)
			if err == nil && len(body) > 0 {
				r.Body = io.NopCloser(bytes.NewReader(flip(body)))
			}
			forward.ServeHTTP(w, r)
		})
		wantError(t, "Put", s.Put(t.Context(), "p", data), storage.ErrUnavailable)
		wantError(t, "Create", s.Create(t.Context(), "c", data), storage.ErrUnavailable)
		p.set(pass)
		if keys := keys(t, s, ""); len(keys) != 0 {
			t.Errorf("server stored the damaged objects %q", keys)
		}
	})
	t.Run("on the server's disk", func(t *testing.T) {
		t.Parallel()
		server := s3test.Start(t, s3test.Options{})
		config := server.Config(server.Bucket(t))
		s := openS3(t, config)
		must(t, s.Put(t.Context(), "a/k", data))
		// WriteFile preserves the file attributes with the checksums of the server.
		must(t, os.WriteFile(filepath.Join(server.Root, config.Bucket, "a", "k"), flip(data), 0o600))
		_, err := s.Get(t.Context(), "a/k")
		wantError(t, "Get", err, storage.ErrCorrupt)
	})
}

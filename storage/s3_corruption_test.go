package storage_test

import (
	"bytes"
	"encoding/base64"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"ddiff/storage"
	"ddiff/storage/s3test"
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
		p.set(func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
			recorder := httptest.NewRecorder()
			forward.ServeHTTP(recorder, r)
			maps.Copy(w.Header(), recorder.Header())
			if body := recorder.Body.Bytes(); r.Method == http.MethodGet {
				w.Header().Set("Content-Length", strconv.Itoa(len(body)/2))
				w.Write(body[:len(body)/2]) //nolint:errcheck // a test
			}
		})
		_, err = s.Get(t.Context(), "k")
		wantError(t, "Get of half an object, as if it were whole", err, storage.ErrUnavailable)
		p.set(pass)
		wantGet(t, s, "k", data)
	})
	t.Run("with a server that keeps no checksums", func(t *testing.T) {
		t.Parallel()
		p := startProxied(t)
		s := openS3(t, p.config)
		must(t, s.Put(t.Context(), "k", data))
		change := changeAnswer(flip)
		p.set(func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
			change(w, without(r, "X-Amz-Checksum-Mode", p.config), forward)
		})
		_, err := s.Get(t.Context(), "k")
		wantError(t, "Get", err, storage.ErrCorrupt)
		if !strings.Contains(err.Error(), "SHA-256") {
			t.Errorf("%v does not name the SHA-256 of the metadata", err)
		}
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
	t.Run("of another program's object", func(t *testing.T) {
		t.Parallel()
		p := startProxied(t)
		sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
		crc := []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}
		core := minio.Core{Client: rawClient(t, p.direct)}
		_, err := core.PutObject(t.Context(), p.direct.Bucket, "k", bytes.NewReader(data), int64(len(data)), "", "",
			minio.PutObjectOptions{UserMetadata: map[string]string{
				"X-Amz-Checksum-Crc32c": base64.StdEncoding.EncodeToString(crc),
			}})
		must(t, err)
		s := openS3(t, p.config)
		wantGet(t, s, "k", data)
		p.set(changeAnswer(flip))
		_, err = s.Get(t.Context(), "k")
		wantError(t, "Get", err, storage.ErrCorrupt)
		p.set(halve)
		_, err = s.Get(t.Context(), "k")
		wantError(t, "Get of half an object with half its length", err, storage.ErrUnavailable)
	})
}

// halve answers with half an object, states half its length, and removes its checksums.
func halve(w http.ResponseWriter, r *http.Request, forward http.Handler) {
	if r.Method != http.MethodGet {
		forward.ServeHTTP(w, r)
		return
	}
	recorder := httptest.NewRecorder()
	forward.ServeHTTP(recorder, r)
	body := recorder.Body.Bytes()
	body = body[:len(body)/2]
	maps.Copy(w.Header(), recorder.Header())
	maps.DeleteFunc(w.Header(), func(name string, _ []string) bool { return strings.HasPrefix(name, "X-Amz-Checksum") })
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(recorder.Code)
	w.Write(body) //nolint:errcheck // a test
}

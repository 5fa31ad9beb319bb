package storage_test

import (
	"bytes"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	"ddiff/storage"
)

func TestS3Ranges(t *testing.T) {
	t.Parallel()
	config := startS3(t)
	config.MaxBytes = 1000
	s := openS3(t, config)
	data := bytes.Repeat([]byte("0123456789"), 100)
	must(t, s.Put(t.Context(), "a/b", data))
	v, err := s.Stat(t.Context(), "a/b")
	must(t, err)
	if v.Key != "a/b" || v.Size != 1000 || v.ETag == "" || v.Modified.IsZero() {
		t.Errorf("info %+v", v)
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
	if _, err := s.Stat(t.Context(), "a/c"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Stat of a missing object = %v, want ErrNotFound", err)
	}
	must(t, s.Put(t.Context(), "a/b", data[:10]))
	if _, err := s.GetRange(t.Context(), "a/b", v.ETag, 0, 1); !errors.Is(err, storage.ErrChanged) {
		t.Errorf("GetRange after a change = %v, want ErrChanged", err)
	}
}

// TestGetChecked: the check sees the beginning and the size before the rest is read, and may refuse the object.
func TestGetChecked(t *testing.T) {
	t.Parallel()
	config := startS3(t)
	config.MaxBytes = 1000
	s := openS3(t, config)
	data := bytes.Repeat([]byte("0123456789"), 100)
	must(t, s.Put(t.Context(), "k", data))
	refused := errors.New("refused")
	for first, want := range map[int64][]byte{0: nil, 1: data[:1], 15: data[:15], 1000: data, 5000: data} {
		calls := 0
		got, err := s.GetChecked(t.Context(), "k", first, func(beginning []byte, size int64) error {
			if calls++; !bytes.Equal(beginning, want) || size != 1000 {
				t.Errorf("the check of %d bytes gets %d bytes of %d", first, len(beginning), size)
			}
			return nil
		})
		if err != nil || !bytes.Equal(got, data) || calls != 1 {
			t.Errorf("%d bytes after %d checks, error %v", len(got), calls, err)
		}
	}
	if got, err := s.GetChecked(t.Context(), "k", 4, func([]byte, int64) error { return refused }); !errors.Is(err, refused) || got != nil {
		t.Errorf("%d bytes of a refused object, error %v", len(got), err)
	}
	accept := func([]byte, int64) error { return nil }
	for key, want := range map[string]error{"missing": storage.ErrNotFound, "../k": storage.ErrBadKey} {
		if _, err := s.GetChecked(t.Context(), key, 4, accept); !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", key, err, want)
		}
	}
}

// TestS3RangeAnswers: a part of another version is refused, also from a server that ignores the condition, and so is a cut or
// an overlong part; an answer without an ETag is accepted.
func TestS3RangeAnswers(t *testing.T) {
	t.Parallel()
	p := startProxied(t)
	s := openS3(t, p.config)
	data := bytes.Repeat([]byte("0123456789"), 100)
	must(t, s.Put(t.Context(), "k", data))
	v, err := s.Stat(t.Context(), "k")
	must(t, err)
	unconditional := func(change func(http.Header)) handler {
		return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
			recorder := httptest.NewRecorder()
			forward.ServeHTTP(recorder, without(r, "If-Match", p.config))
			change(recorder.Header())
			maps.Copy(w.Header(), recorder.Header())
			w.WriteHeader(recorder.Code)
			w.Write(recorder.Body.Bytes()) //nolint:errcheck // a test
		}
	}
	get := func() ([]byte, error) { return s.GetRange(t.Context(), "k", v.ETag, 0, 10) }
	p.set(unconditional(func(h http.Header) { h.Del("ETag") }))
	if got, err := get(); err != nil || !bytes.Equal(got, data[:10]) {
		t.Errorf("answer without an ETag: %q, %v", got, err)
	}
	p.set(unconditional(func(h http.Header) { h.Set("ETag", `"another"`) }))
	if _, err := get(); !errors.Is(err, storage.ErrChanged) {
		t.Errorf("answer with another ETag: %v, want ErrChanged", err)
	}
	p.set(changeAnswer(func(body []byte) []byte { return body[:len(body)/2] }))
	if got, err := get(); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("half a part: %q, %v, want ErrUnavailable", got, err)
	}
	p.set(unconditional(func(h http.Header) { h.Del("Content-Length") }))
	if got, err := get(); err != nil || !bytes.Equal(got, data[:10]) {
		t.Errorf("answer without a length: %q, %v", got, err)
	}
}

// TestGetCheckedWithoutSize: an object of unstated size is read up to the limit, also behind the checked beginning.
func TestGetCheckedWithoutSize(t *testing.T) {
	t.Parallel()
	p := startProxied(t)
	s := openS3(t, p.config)
	must(t, s.Put(t.Context(), "small", make([]byte, 1000)))
	must(t, s.Put(t.Context(), "large", make([]byte, 1001)))
	config := p.config
	config.MaxBytes = 1000
	limited := openS3(t, config)
	p.set(func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		recorder := httptest.NewRecorder()
		forward.ServeHTTP(recorder, r)
		maps.Copy(w.Header(), recorder.Header())
		w.Header().Del("Content-Length")
		w.WriteHeader(recorder.Code)
		w.(http.Flusher).Flush()       // chunks, without a length
		w.Write(recorder.Body.Bytes()) //nolint:errcheck // a test
	})
	for _, first := range []int64{0, 1, 600, 1000} {
		accept := func([]byte, int64) error { return nil }
		if got, err := limited.GetChecked(t.Context(), "small", first, accept); err != nil || len(got) != 1000 {
			t.Errorf("first %d: %d bytes, %v", first, len(got), err)
		}
		if got, err := limited.GetChecked(t.Context(), "large", first, accept); !errors.Is(err, storage.ErrTooLarge) {
			t.Errorf("first %d: %d bytes, %v, want ErrTooLarge", first, len(got), err)
		}
	}
}

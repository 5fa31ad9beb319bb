package storage_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/internal/fuzztest"
	"ddiff/storage"
)

// openHostile opens a store, for reading, on a server with one answer for all requests.
func openHostile(t testing.TB, anyKey bool) (s *storage.S3, set func(http.HandlerFunc)) {
	t.Helper()
	var answer atomic.Pointer[http.HandlerFunc]
	set = func(h http.HandlerFunc) { answer.Store(&h) }
	set(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(listing)) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*answer.Load())(w, r) }))
	t.Cleanup(server.Close)
	s, err := storage.OpenS3(t.Context(), storage.S3Config{
		Endpoint: server.URL, Bucket: "bucket", Region: "r", AccessKey: "a", SecretKey: "b", ReadOnly: true, AnyKey: anyKey,
		Addressing: storage.AddressingPath, MaxBytes: 1 << 20, Timeout: 10 * time.Second, Retry: storage.RetryConfig{Attempts: 1},
	})
	must(t, err)
	t.Cleanup(s.Close)
	return s, set
}

const listing = `<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name><KeyCount>2</KeyCount>
<MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated><EncodingType>url</EncodingType><Contents><Key>a.png</Key><LastModified>2024-01-02T03:04:05.000Z</LastModified>
<ETag>"d41d"</ETag><Size>5</Size></Contents><Contents><Key>b%2Fc.png</Key><LastModified>2024-01-02T03:04:05.000Z</LastModified><Size>7</Size></Contents></ListBucketResult>`

// FuzzS3Answers: any answer of a server is a listing in byte order, an object within the limit, or an error, in memory in proportion to it.
func FuzzS3Answers(f *testing.F) {
	f.Add(200, "", []byte(listing))
	f.Add(202, "", []byte(listing)) // the client of S3 returned an object without a body
	f.Add(503, "", []byte(`<Error><Code>SlowDown</Code><Message>wait</Message><Resource>/bucket</Resource></Error>`))
	f.Add(404, "X-Minio-Error-Code: NoSuchKey", []byte(nil))
	f.Add(206, "Etag: \"d41d\"\nContent-Range: bytes 0-4/5\nLast-Modified: Mon, 02 Jan 2006 15:04:05 GMT\nX-Amz-Meta-Ddiff-Sha256: 00", []byte("bytes"))
	s, set := openHostile(f, true)
	f.Fuzz(func(t *testing.T, status int, headers string, body []byte) {
		if status < 200 || status > 599 {
			return
		}
		set(func(w http.ResponseWriter, r *http.Request) {
			for line := range strings.SplitSeq(headers, "\n") {
				if name, value, ok := strings.Cut(line, ":"); ok && !strings.EqualFold(name, "Content-Length") {
					w.Header()[http.CanonicalHeaderKey(name)] = []string{strings.TrimSpace(value)}
				}
			}
			w.WriteHeader(status)
			if r.Method != http.MethodHead {
				_, _ = w.Write(body)
			}
		})
		fuzztest.Limit(t, 8<<20+2048*len(body), func() {
			last, n := "", 0
			for info, err := range s.List(t.Context(), "") {
				if err != nil {
					break
				}
				if n++; n > len(body) || info.Size < 0 || info.Key <= last && !strings.Contains(info.Key, "\ufffd") {
					t.Fatalf("object %d is %+v after %q", n, info, last)
				}
				last = info.Key
			}
			if data, err := s.Get(t.Context(), "a"); err == nil && len(data) > 1<<20 {
				t.Errorf("%d bytes", len(data))
			}
			if data, err := s.GetRange(t.Context(), "a", "d41d", 0, 4); err == nil && len(data) > 4 {
				t.Errorf("%d bytes of a range of 4", len(data))
			}
			if info, err := s.Stat(t.Context(), "a"); err == nil && info.Size < 0 {
				t.Errorf("%+v", info)
			}
		})
	})
}

// TestS3OtherStatus: an answer with a status that S3 does not have is an error, and no empty listing.
func TestS3OtherStatus(t *testing.T) {
	t.Parallel()
	s, set := openHostile(t, false)
	for _, status := range []int{201, 202, 203, 204, 205, 299} {
		set(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(listing))
		})
		want := func(err error) {
			t.Helper()
			if err == nil || errors.Is(err, storage.ErrNotFound) || !strings.Contains(err.Error(), strconv.Itoa(status)) {
				t.Errorf("status %d: error %v", status, err)
			}
		}
		n := 0
		for _, err := range s.List(t.Context(), "") {
			n++
			want(err)
		}
		if n != 1 {
			t.Errorf("status %d: a listing of %d", status, n)
		}
		_, err := s.Get(t.Context(), "a")
		want(err)
		_, err = s.Stat(t.Context(), "a")
		want(err)
	}
}

// TestS3EndlessListing: a listing without an end, and one of more objects than were asked for, are errors and need little memory.
func TestS3EndlessListing(t *testing.T) {
	s, set := openHostile(t, false)
	begin, _, _ := strings.Cut(listing, "<Contents>")
	for _, c := range []struct{ begin, chunk string }{{begin, "<Contents/>"}, {begin + "<Contents><Key>", "x"}, {begin, "<a><b>"}} {
		text := []byte(strings.Repeat(c.chunk, 64<<10/len(c.chunk)))
		set(func(w http.ResponseWriter, r *http.Request) {
			_, err := w.Write([]byte(c.begin))
			for err == nil && r.Context().Err() == nil {
				_, err = w.Write(text)
			}
		})
		fuzztest.Limit(t, 256<<20, func() {
			for _, err := range s.List(t.Context(), "") {
				if err == nil || errors.Is(err, storage.ErrNotFound) {
					t.Errorf("%s: error %v", c.chunk, err)
				}
			}
		})
	}
}

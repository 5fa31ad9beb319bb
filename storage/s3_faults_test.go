package storage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"ddiff/storage"
)

func TestOpenS3ProbesConditionalWrites(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		handle func(storage.S3Config) handler
		want   error
	}{
		{"ignored", ignoreCondition, storage.ErrNoConditionalWrites},
		{"unknown", func(storage.S3Config) handler {
			h, _ := first(1, http.MethodPut, answer(http.StatusNotImplemented, "NotImplemented"))
			return h
		}, storage.ErrNoConditionalWrites},
		{"forbidden", func(storage.S3Config) handler {
			h, _ := first(1, http.MethodPut, answer(http.StatusForbidden, "AccessDenied"))
			return h
		}, storage.ErrReadOnly},
		{"second answer lost", func(storage.S3Config) handler {
			h, _ := first(2, http.MethodPut, loseAnswer)
			return h
		}, storage.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := startProxied(t)
			p.set(c.handle(p.config))
			wantOpenError(t, p.config, c.want, p.config.Endpoint, p.config.Bucket)
			direct := openS3(t, p.direct)
			if keys := rawKeys(t, p.direct); len(keys) != 0 {
				t.Errorf("probe left %q in %s", keys, direct)
			}
			p.set(pass)
			openS3(t, p.config)
		})
	}
}

// rawKeys lists a bucket including invalid keys.
func rawKeys(t *testing.T, config storage.S3Config) []string {
	t.Helper()
	var keys []string
	for object := range rawClient(t, config).ListObjectsIter(t.Context(), config.Bucket, minio.ListObjectsOptions{Recursive: true}) {
		must(t, object.Err)
		keys = append(keys, object.Key)
	}
	return keys
}

// rawClient returns a client like that of other programs.
func rawClient(t *testing.T, config storage.S3Config) *minio.Client {
	t.Helper()
	client, err := minio.New(strings.TrimPrefix(config.Endpoint, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(config.AccessKey, config.SecretKey, ""), Region: config.Region,
	})
	must(t, err)
	return client
}

// TestS3LostAnswer drops the answers to the PUT and to some of the following requests.
func TestS3LostAnswer(t *testing.T) {
	t.Parallel()
	for lose := range 4 {
		t.Run(fmt.Sprintf("%d answers", lose), func(t *testing.T) {
			t.Parallel()
			p := startProxied(t)
			s, retrying := openS3(t, p.config), openS3(t, retryNow(p.config, nil))
			var requests atomic.Int64
			p.set(func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
				if requests.Add(1) <= int64(lose) {
					loseAnswer(w, r, forward)
				}
				forward.ServeHTTP(w, r)
			})
			must(t, retrying.Create(t.Context(), "k", []byte("mine")))
			wantGet(t, s, "k", []byte("mine"))
			wantError(t, "a second Create", s.Create(t.Context(), "k", []byte("mine")), storage.ErrExists)
		})
	}
}

// TestS3CreateConnectionBreaks breaks the connection of a Create without retries before or after it takes effect.
func TestS3CreateConnectionBreaks(t *testing.T) {
	t.Parallel()
	refuse := func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }
	for _, c := range []struct {
		name   string
		there  bool
		handle handler
		want   error
	}{
		{"after it took effect", false, loseAnswer, nil},
		{"after it was refused", true, loseAnswer, storage.ErrExists},
		{"before it is read, and it exists", true, refuse, storage.ErrExists},
		{"before it is read", false, refuse, storage.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := startProxied(t)
			s := openS3(t, p.config)
			if c.there {
				must(t, s.Put(t.Context(), "k", []byte("mine")))
			}
			h, _ := first(1, http.MethodPut, c.handle)
			p.set(h)
			if err := s.Create(t.Context(), "k", []byte("mine")); !errors.Is(err, c.want) {
				t.Errorf("Create = %v, want %v", err, c.want)
			}
		})
	}
}

// TestS3CreateRaceWithLostAnswers drops two of five answers to racing creators.
func TestS3CreateRaceWithLostAnswers(t *testing.T) {
	t.Parallel()
	const keys, creators = 10, 6
	p := startProxied(t)
	s := openS3(t, retryNow(p.config, nil))
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, 2))
	p.set(func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		mu.Lock()
		lose := random.Float64() < 0.4
		mu.Unlock()
		if lose {
			loseAnswer(w, r, forward)
		}
		forward.ServeHTTP(w, r)
	})
	var winners [keys][creators]error
	var group sync.WaitGroup
	for k := range keys {
		for c := range creators {
			group.Go(func() {
				winners[k][c] = s.Create(t.Context(), fmt.Sprintf("k%d", k), fmt.Appendf(nil, "creator %d", c))
			})
		}
	}
	group.Wait()
	p.set(pass)
	for k := range keys {
		wantOneCreator(t, s, fmt.Sprintf("k%d", k), winners[k][:])
	}
}

// wantOneCreator checks that one of racing creators of "creator N" succeeded, and that its bytes are stored.
func wantOneCreator(t *testing.T, s storage.Store, key string, results []error) {
	t.Helper()
	winner := -1
	for c, err := range results {
		switch {
		case err == nil && winner >= 0:
			t.Fatalf("%s: creators %d and %d both succeeded", key, winner, c)
		case err == nil:
			winner = c
		case !errors.Is(err, storage.ErrExists):
			t.Fatalf("%s: creator %d: %v", key, c, err)
		}
	}
	if winner < 0 {
		t.Fatalf("%s: no creator succeeded", key)
	}
	wantGet(t, s, key, fmt.Appendf(nil, "creator %d", winner))
}

func TestS3RetriesUntilAvailable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method string
		call   func(context.Context, storage.Store) error
	}{
		{http.MethodPut, func(ctx context.Context, s storage.Store) error { return s.Create(ctx, "new", []byte("x")) }},
		{http.MethodPut, func(ctx context.Context, s storage.Store) error { return s.Put(ctx, "k", []byte("k")) }},
		{http.MethodGet, func(ctx context.Context, s storage.Store) error { _, err := s.Get(ctx, "k"); return err }},
		{http.MethodHead, func(ctx context.Context, s storage.Store) error { _, err := s.Stat(ctx, "k"); return err }},
		{http.MethodDelete, func(ctx context.Context, s storage.Store) error { return s.Delete(ctx, "other") }},
		{http.MethodGet, func(ctx context.Context, s storage.Store) error {
			for _, err := range s.List(ctx, "") {
				return err
			}
			return errors.New("nothing is listed")
		}},
	} {
		t.Run(c.method, func(t *testing.T) {
			t.Parallel()
			p := startProxied(t)
			var waits []time.Duration
			s, retrying := openS3(t, p.config), openS3(t, retryNow(p.config, &waits))
			must(t, s.Put(t.Context(), "k", []byte("k")))
			for _, fault := range []struct {
				status int
				code   string
			}{{503, "SlowDown"}, {500, "InternalError"}, {502, ""}, {429, "TooManyRequests"}} {
				must(t, s.Delete(t.Context(), "new"))
				waits = nil
				h, count := first(2, c.method, answer(fault.status, fault.code))
				p.set(h)
				wantError(t, "call without retries", c.call(t.Context(), s), storage.ErrUnavailable)
				must(t, c.call(t.Context(), retrying))
				if count.Load() != 3 || len(waits) != 1 {
					t.Errorf("%d: %d requests and the waits %v, want 3 requests and 1 wait", fault.status, count.Load(), waits)
				}
				p.set(pass)
			}
		})
	}
}

// TestS3Conflict: a Create repeats its request while another writer is active.
func TestS3Conflict(t *testing.T) {
	t.Parallel()
	p := startProxied(t)
	s := openS3(t, retryNow(p.config, nil))
	conflict := answer(http.StatusConflict, "ConditionalRequestConflict")
	h, count := first(3, http.MethodPut, conflict)
	p.set(h)
	must(t, s.Create(t.Context(), "k", []byte("x")))
	wantGet(t, s, "k", []byte("x"))
	if count.Load() != 4 {
		t.Errorf("%d requests, want 4", count.Load())
	}
	p.set(conflict)
	wantError(t, "Create", s.Create(t.Context(), "l", nil), storage.ErrUnavailable)
}

func TestS3AnswerErrors(t *testing.T) {
	t.Parallel()
	p := startProxied(t)
	s := openS3(t, p.config)
	for _, c := range []struct {
		status         int
		code           string
		onGet, onWrite error
	}{
		{403, "AccessDenied", storage.ErrAccess, storage.ErrReadOnly},
		{403, "ExpiredToken", storage.ErrAccess, storage.ErrAccess},
		{403, "RequestTimeTooSkewed", storage.ErrAccess, storage.ErrAccess},
		{400, "ExpiredToken", storage.ErrAccess, storage.ErrAccess},
		{400, "TokenRefreshRequired", storage.ErrAccess, storage.ErrAccess},
		{403, "CodeOfOneVendor", storage.ErrAccess, storage.ErrReadOnly},
		{401, "CodeOfOneVendor", storage.ErrAccess, storage.ErrReadOnly},
		{503, "CodeOfOneVendor", storage.ErrUnavailable, storage.ErrUnavailable},
		{403, "QuotaExceeded", storage.ErrNoSpace, storage.ErrNoSpace},
		{307, "TemporaryRedirect", storage.ErrUnavailable, storage.ErrUnavailable},
		{507, "InsufficientStorage", storage.ErrNoSpace, storage.ErrNoSpace},
		{400, "EntityTooLarge", storage.ErrTooLarge, storage.ErrTooLarge},
		{400, "KeyTooLongError", storage.ErrBadKey, storage.ErrBadKey},
		{404, "NoSuchBucket", storage.ErrNoBucket, storage.ErrNoBucket},
		{409, "ObjectParentIsFile", storage.ErrConflict, storage.ErrConflict},
		{400, "XAmzContentSHA256Mismatch", storage.ErrUnavailable, storage.ErrUnavailable},
	} {
		p.set(answer(c.status, c.code))
		_, err := s.Get(t.Context(), "k")
		wantError(t, "Get after "+c.code, err, c.onGet)
		wantError(t, "Put after "+c.code, s.Put(t.Context(), "k", nil), c.onWrite)
		wantError(t, "Create after "+c.code, s.Create(t.Context(), "k", nil), c.onWrite)
	}
	for status, want := range map[int]error{400: storage.ErrAccess, 403: storage.ErrAccess, 404: storage.ErrNotFound, 503: storage.ErrUnavailable} {
		p.set(answer(status, "")) // the answer to HEAD has no body
		_, err := s.Stat(t.Context(), "k")
		wantError(t, fmt.Sprintf("Stat after %d", status), err, want)
	}
	p.set(bare(http.StatusBadRequest)) // as to a request without TLS
	if _, err := s.Get(t.Context(), "k"); errors.Is(err, storage.ErrAccess) || !strings.Contains(err.Error(), "proxy") {
		t.Errorf("Get after a page: %v", err)
	}
	if err := s.Put(t.Context(), "k", nil); errors.Is(err, storage.ErrReadOnly) || !strings.Contains(err.Error(), "proxy") {
		t.Errorf("Put after a page: %v", err)
	}
}

// TestS3Retention: a bucket whose objects have a default retention accepts only objects with the digest Content-MD5.
func TestS3Retention(t *testing.T) {
	t.Parallel()
	p := startProxied(t)
	p.set(func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if r.Method == http.MethodPut && r.Header.Get("Content-Md5") == "" {
			answer(http.StatusBadRequest, "InvalidRequest")(w, r, forward)
			return
		}
		forward.ServeHTTP(w, r)
	})
	s := openS3(t, p.config)
	data := randomBytes(1000, 1)
	must(t, s.Create(t.Context(), "k", data))
	wantGet(t, s, "k", data)
	must(t, s.Put(t.Context(), "k", nil))
}

// TestS3Timeout sends no answer or only the beginning of an answer.
func TestS3Timeout(t *testing.T) {
	t.Parallel()
	p := startProxied(t)
	must(t, openS3(t, p.direct).Put(t.Context(), "k", randomBytes(1000, 1)))
	s := openS3(t, p.config)
	p.config.Timeout = 400 * time.Millisecond
	impatient := openS3(t, p.config)
	hang := func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // the end of the connection is detected only after the body
		<-r.Context().Done()
	}
	hangInBody := func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		w.Header().Set("Content-Length", "1000")
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		hang(w, r, forward)
	}
	for name, h := range map[string]handler{"before the answer": hang, "in its body": hangInBody} {
		p.set(h)
		_, err := impatient.Get(t.Context(), "k")
		wantError(t, "Get of a server that hangs "+name, err, storage.ErrUnavailable)
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.Errorf("%v looks like a cancellation by the caller", err)
		}
	}
	p.set(hang)
	wantError(t, "Put", impatient.Put(t.Context(), "k", nil), storage.ErrUnavailable)
	wantError(t, "Create", impatient.Create(t.Context(), "c", nil), storage.ErrUnavailable)
	for _, err := range impatient.List(t.Context(), "") {
		wantError(t, "List", err, storage.ErrUnavailable)
	}

	ctx, cancel := context.WithCancel(t.Context())
	p.set(func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		cancel()
		hang(w, r, forward)
	})
	_, err := s.Get(ctx, "k")
	wantError(t, "cancelled Get", err, context.Canceled)
	if errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("cancelled Get = %v", err)
	}
}

// TestS3ListOutOfOrder: a server that lists a name twice, or names out of byte order, would hide others from a listing that resumes after
// the last name. The listing ends with an error.
func TestS3ListOutOfOrder(t *testing.T) {
	t.Parallel()
	p := startProxied(t)
	s := openS3(t, p.config)
	for _, key := range []string{"list/a", "list/b"} {
		must(t, s.Put(t.Context(), key, nil))
	}
	for _, from := range []string{"a", "b"} {
		to := map[string]string{"a": "c", "b": "a"}[from] // c before b, or a twice
		p.set(changeAnswer(func(body []byte) []byte {
			return bytes.ReplaceAll(body, []byte("list/"+from+"</Key>"), []byte("list/"+to+"</Key>"))
		}))
		var failure error
		for _, err := range s.List(t.Context(), "list/") {
			failure = err
		}
		if failure == nil || !strings.Contains(failure.Error(), "out of byte order") {
			t.Errorf("%s listed as %s: %v", from, to, failure)
		}
	}
}

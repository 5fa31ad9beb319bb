package storage_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"ddiff/storage"
)

// bare answers with a status and a page in place of an S3 answer, as a proxy does.
func bare(status int) handler {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // an unread body would break the connection
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		io.WriteString(w, "<html><body>proxy</body></html>") //nolint:errcheck // a test
	}
}

// after forwards a request, waits for a while, and then answers something else.
func after(other handler) handler {
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		forward.ServeHTTP(httptest.NewRecorder(), r)
		time.Sleep(5 * time.Millisecond)
		other(w, r, forward)
	}
}

// late answers something else at once, and forwards the request when its sender has sent others.
func late(other handler, sent *sync.WaitGroup) handler {
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		again := r.Clone(context.WithoutCancel(r.Context()))
		again.Body = io.NopCloser(bytes.NewReader(body))
		sent.Go(func() {
			time.Sleep(20 * time.Millisecond)
			forward.ServeHTTP(httptest.NewRecorder(), again)
		})
		r.Body = http.NoBody
		other(w, r, forward)
	}
}

// TestAttackLateAnswers: a proxy applies a PUT request and answers that it failed, does not apply it and answers that it is stored, applies it
// after its answer, or answers with a page. One of racing creators succeeds, its bytes stay, and what is acknowledged is stored.
func TestAttackLateAnswers(t *testing.T) {
	t.Parallel()
	p := startProxied(t)
	s := openS3(t, retryNow(p.config, nil))
	var sent sync.WaitGroup
	lies := map[string]handler{
		"applied, then 500":                      after(answer(http.StatusInternalServerError, "InternalError")),
		"applied, then 500 with a page":          after(bare(http.StatusInternalServerError)),
		"applied, then 409":                      after(answer(http.StatusConflict, "ConditionalRequestConflict")),
		"applied, then 409 with a page":          after(bare(http.StatusConflict)),
		"not applied, 409 with a page":           bare(http.StatusConflict),
		"applied, then 412 with a page":          after(bare(http.StatusPreconditionFailed)),
		"not applied, 412":                       answer(http.StatusPreconditionFailed, "PreconditionFailed"),
		"not applied, 200 with a page":           bare(http.StatusOK),
		"not applied, 200 with an error":         answer(http.StatusOK, "InternalError"),
		"applied after an answer of 503":         late(answer(http.StatusServiceUnavailable, "SlowDown"), &sent),
		"applied after an answer of 412":         late(answer(http.StatusPreconditionFailed, "PreconditionFailed"), &sent),
		"applied after the connection was ended": late(func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }, &sent),
	}
	for name, lie := range lies {
		h, _ := first(1, http.MethodPut, lie)
		p.set(h)
		if err := s.Create(t.Context(), name, []byte(name)); err != nil {
			t.Errorf("%s: Create = %v", name, err)
			continue
		}
		sent.Wait()
		wantGet(t, s, name, []byte(name))
		wantError(t, "a second Create", s.Create(t.Context(), name, []byte("another")), storage.ErrExists)
	}
	for _, name := range []string{"applied, then 500", "applied, then 409 with a page", "not applied, 200 with a page", "not applied, 200 with an error"} {
		h, _ := first(1, http.MethodPut, lies[name])
		p.set(h)
		must(t, s.Put(t.Context(), name, []byte("replaced")))
		wantGet(t, s, name, []byte("replaced"))
	}

	const rounds, creators = 12, 4
	names := make([]string, 0, len(lies))
	for name := range lies {
		names = append(names, name)
	}
	p.set(func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if r.Method == http.MethodPut && rand.IntN(2) == 0 {
			lies[names[rand.IntN(len(names))]](w, r, forward)
			return
		}
		forward.ServeHTTP(w, r)
	})
	for round := range rounds {
		key := fmt.Sprintf("race/%d", round)
		var results [creators]error
		var group sync.WaitGroup
		for c := range creators {
			group.Go(func() { results[c] = s.Create(t.Context(), key, fmt.Appendf(nil, "creator %d", c)) })
		}
		group.Wait()
		sent.Wait()
		wantOneCreator(t, s, key, results[:])
	}
}

package storage_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/storage"
)

// retryNow returns a configuration with many attempts, which do not wait, and records the waits.
func retryNow(config storage.S3Config, waits *[]time.Duration) storage.S3Config {
	var mu sync.Mutex
	config.Retry = storage.RetryConfig{Attempts: 60, Sleep: func(ctx context.Context, d time.Duration) error {
		mu.Lock()
		defer mu.Unlock()
		if waits != nil {
			*waits = append(*waits, d)
		}
		return ctx.Err()
	}}
	return config
}

// The defaults are six attempts with waits of 0.2 s that double up to 10 s.
func TestRetryWaits(t *testing.T) {
	t.Parallel()
	p := startProxied(t)
	for _, c := range []struct {
		config  storage.RetryConfig
		longest []int64
	}{
		{storage.RetryConfig{}, []int64{200, 400, 800, 1600, 3200}},
		{storage.RetryConfig{Attempts: 9}, []int64{200, 400, 800, 1600, 3200, 6400, 10_000, 10_000}},
		{storage.RetryConfig{Attempts: 5, Base: 100 * time.Millisecond, Max: 500 * time.Millisecond}, []int64{100, 200, 400, 500}},
	} {
		var waits []time.Duration
		config := retryNow(p.config, &waits)
		c.config.Sleep = config.Retry.Sleep
		config.Retry = c.config
		p.set(pass)
		s := openS3(t, config)
		busy, _ := first(int64(len(c.longest)), http.MethodPut, answer(http.StatusServiceUnavailable, "SlowDown"))
		p.set(busy)
		must(t, s.Put(t.Context(), "k", []byte("x")))
		if len(waits) != len(c.longest) {
			t.Fatalf("%+v: waits %v, want %d waits", c.config, waits, len(c.longest))
		}
		for i, d := range waits {
			if ms, most := d.Milliseconds(), c.longest[i]; ms < most/2 || ms > most {
				t.Errorf("%+v: wait %d is %d ms, want %d to %d ms", c.config, i+1, ms, most/2, most)
			}
		}
	}
}

// TestRetryGivesUp: a call ends after its attempts, and at once after an error that no retry helps against.
func TestRetryGivesUp(t *testing.T) {
	t.Parallel()
	p := startProxied(t)
	var log bytes.Buffer
	p.config.Retry = storage.RetryConfig{Attempts: 3, Base: time.Nanosecond, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	s := openS3(t, p.config)
	for code, want := range map[string]int64{"SlowDown": 3, "AccessDenied": 1, "QuotaExceeded": 1, "InvalidArgument": 1} {
		log.Reset()
		refuse, requests := first(100, http.MethodPut, answer(http.StatusBadRequest, code))
		p.set(refuse)
		err := s.Put(t.Context(), "k", nil)
		if err == nil || requests.Load() != want || strings.Contains(err.Error(), "attempt 3 of 3") != (want == 3) {
			t.Errorf("%s: %d requests, then %v, want %d requests", code, requests.Load(), err, want)
		}
		if lines := int64(strings.Count(log.String(), "key=k")); lines != want-1 {
			t.Errorf("%s: %d log lines, want %d:\n%s", code, lines, want-1, &log)
		}
	}
}

func TestRetryCancelledDuringWait(t *testing.T) {
	t.Parallel()
	p := startProxied(t)
	ctx, cancel := context.WithCancel(t.Context())
	p.config.Retry = storage.RetryConfig{Sleep: func(ctx context.Context, _ time.Duration) error {
		cancel()
		return ctx.Err()
	}}
	s := openS3(t, p.config)
	busy, requests := first(100, http.MethodGet, answer(http.StatusServiceUnavailable, "SlowDown"))
	p.set(busy)
	_, err := s.Get(ctx, "k")
	wantError(t, "Get", err, context.Canceled)
	wantError(t, "Get", err, storage.ErrUnavailable)
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// TestRetryListResumes breaks every second page of a listing, before or in its answer; it must yield each key once.
func TestRetryListResumes(t *testing.T) {
	t.Parallel()
	want := []string{"k0", "k1", "k2", "k3", "k4"}
	p := startProxied(t)
	config := retryNow(p.config, nil)
	config.Retry.Attempts = 3
	s := openS3(t, config)
	storage.SetPageSize(s, 2)
	for _, key := range want {
		must(t, s.Put(t.Context(), key, nil))
	}
	cut := changeAnswer(func(body []byte) []byte { return body[:len(body)/2] })
	for _, breaks := range []handler{answer(http.StatusServiceUnavailable, "SlowDown"), cut} {
		n := 0
		p.set(func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
			if n++; n%2 == 0 {
				breaks(w, r, forward)
				return
			}
			forward.ServeHTTP(w, r)
		})
		if got := keys(t, s, "k"); !slices.Equal(got, want) {
			t.Errorf("keys %q, want %q", got, want)
		}
	}
	p.set(answer(http.StatusServiceUnavailable, "SlowDown"))
	count, last := 0, error(nil)
	for _, err := range s.List(t.Context(), "") {
		count++
		last = err
	}
	wantError(t, "List", last, storage.ErrUnavailable)
	if count != 1 {
		t.Errorf("%d pairs, want only the error", count)
	}
}

func TestRetrySendsAllBytesAgain(t *testing.T) {
	t.Parallel()
	p := startProxied(t)
	s := openS3(t, retryNow(p.config, nil))
	data := bytes.Repeat([]byte("0123456789"), 100)
	lose, requests := first(1, http.MethodPut, loseAnswer)
	p.set(lose)
	must(t, s.Put(t.Context(), "a", data))
	wantGet(t, s, "a", data)
	if n := requests.Load(); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

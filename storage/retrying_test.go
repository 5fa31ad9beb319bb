package storage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/storage"
)

func TestRetryingContract(t *testing.T) {
	t.Parallel()
	testContract(t, func(t *testing.T) storage.Store { return retryNow(t, newDir(t, t.TempDir()), nil) })
}

// flaky is a store whose first calls fail with the given errors.
type flaky struct {
	storage.Store
	errs  []error
	calls int
	// listed is the number of objects that a listing yields before it fails.
	listed int
}

func newFlaky(s storage.Store, errs []error) *flaky {
	f := &flaky{errs: errs}
	f.Store = storage.NewAround(s, func(ctx context.Context, key string, call func(context.Context, string) error) error {
		if err := f.next(); err != nil {
			return err
		}
		return call(ctx, key)
	})
	return f
}

func (f *flaky) next() error {
	f.calls++
	if len(f.errs) == 0 {
		return nil
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	return err
}

func (f *flaky) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		broken := f.next()
		seen := 0
		for info, err := range f.Store.List(ctx, prefix) {
			if broken != nil && seen == f.listed {
				yield(storage.Info{}, broken)
				return
			}
			seen++
			if !yield(info, err) {
				return
			}
		}
	}
}

// unavailable returns n transient errors.
func unavailable(n int) []error {
	return slices.Repeat([]error{fmt.Errorf("put k: %w", storage.ErrUnavailable)}, n)
}

// The defaults are six attempts with waits of 0.2 s that double up to 10 s.
func TestRetryingWaits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config  storage.RetryConfig
		longest []int64
	}{
		{storage.RetryConfig{}, []int64{200, 400, 800, 1600, 3200}},
		{storage.RetryConfig{Attempts: 9}, []int64{200, 400, 800, 1600, 3200, 6400, 10_000, 10_000}},
		{storage.RetryConfig{Attempts: 5, Base: 100 * time.Millisecond, Max: 500 * time.Millisecond}, []int64{100, 200, 400, 500}},
	} {
		var waits []time.Duration
		attempts, longest := c.config.Attempts, c.longest
		store := newFlaky(newDir(t, t.TempDir()), unavailable(len(longest)))
		c.config.Sleep = func(_ context.Context, d time.Duration) error {
			waits = append(waits, d)
			return nil
		}
		r := storage.NewRetrying(store, c.config)
		must(t, r.Put(t.Context(), "k", []byte("x")))
		if len(waits) != len(longest) {
			t.Fatalf("attempts %d: waits %v, want %d waits", attempts, waits, len(longest))
		}
		for i, d := range waits {
			if ms, most := d.Milliseconds(), longest[i]; ms < most/2 || ms > most {
				t.Errorf("attempts %d: wait %d is %d ms, want %d to %d ms", attempts, i+1, ms, most/2, most)
			}
		}
	}
}

func TestRetryingGivesUp(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	store := newFlaky(newDir(t, t.TempDir()), unavailable(10))
	r := storage.NewRetrying(store, storage.RetryConfig{
		Attempts: 3, Base: time.Nanosecond, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	err := r.Put(t.Context(), "k", nil)
	wantError(t, "Put", err, storage.ErrUnavailable)
	if store.calls != 3 || !strings.Contains(err.Error(), "3") {
		t.Errorf("%d calls, then %q; want 3 calls and an error with that number", store.calls, err)
	}
	if lines := strings.Count(log.String(), "key=k"); lines != 2 {
		t.Errorf("%d log lines, want 2:\n%s", lines, &log)
	}
}

func TestRetryingOnlyTransientErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err   error
		calls int
	}{
		{storage.ErrUnavailable, 2},
		{os.ErrDeadlineExceeded, 2},
		{storage.ErrNotFound, 1},
		{storage.ErrExists, 1},
		{storage.ErrCorrupt, 1},
		{storage.ErrAccess, 1},
		{storage.ErrNoSpace, 1},
		{errors.New("unknown"), 1},
	} {
		store := newFlaky(newDir(t, t.TempDir()), []error{fmt.Errorf("put k: %w", c.err)})
		err := retryNow(t, store, nil).Put(t.Context(), "k", nil)
		if store.calls != c.calls || (c.calls == 1) != errors.Is(err, c.err) {
			t.Errorf("after %v: %d calls and then %v, want %d calls", c.err, store.calls, err, c.calls)
		}
	}
}

func TestRetryingCancelledDuringWait(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	store := newFlaky(newDir(t, t.TempDir()), unavailable(10))
	r := storage.NewRetrying(store, storage.RetryConfig{
		Sleep: func(ctx context.Context, _ time.Duration) error {
			cancel()
			return ctx.Err()
		},
	})
	_, err := r.Get(ctx, "k")
	wantError(t, "Get", err, context.Canceled)
	wantError(t, "Get", err, storage.ErrUnavailable)
	if store.calls != 1 {
		t.Errorf("%d calls, want 1", store.calls)
	}
}

// TestRetryingListResumes interrupts a listing repeatedly; it must yield each key once.
func TestRetryingListResumes(t *testing.T) {
	t.Parallel()
	dir := newDir(t, t.TempDir())
	var want []string
	for i := range 12 {
		want = append(want, fmt.Sprintf("k%02d", i))
		must(t, dir.Put(t.Context(), want[i], nil))
	}
	for _, listed := range []int{0, 1, 5, 11} {
		store := newFlaky(dir, unavailable(3))
		store.listed = listed
		if got := keys(t, retryNow(t, store, nil), "k"); !slices.Equal(got, want) {
			t.Errorf("interrupted after %d objects: %q, want %q", listed, got, want)
		}
		if store.calls != 4 {
			t.Errorf("interrupted after %d objects: %d listings, want 4", listed, store.calls)
		}
	}
	store := newFlaky(dir, unavailable(100))
	count, last := 0, error(nil)
	for _, err := range retryNow(t, store, nil).List(t.Context(), "") {
		count++
		last = err
	}
	wantError(t, "List", last, storage.ErrUnavailable)
	if count != 1 {
		t.Errorf("%d pairs, want only the error", count)
	}
}

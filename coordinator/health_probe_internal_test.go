package coordinator

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// slowStore is a store in which a read takes a time of the test's clock.
type slowStore struct {
	storage.Store
	read func() error
}

func (s slowStore) Get(ctx context.Context, key string) ([]byte, error) {
	if err := s.read(); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, key)
}

// TestIntervalOfProbes: the interval of probes is counted from their begin, so that a slow store is not probed less often. A beat
// that cannot be published is logged.
func TestIntervalOfProbes(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	var log strings.Builder
	r := decidingRunner(t, &now, &log).onBoard(t)
	ctx, cancel := context.WithTimeout(t.Context(), patienceOfProbes)
	defer cancel()
	r.s.cfg.Probe = time.Hour
	var clock atomic.Int64 // which a goroutine of the service reads, too
	r.s.cfg.Now = func() time.Time { return now.Add(time.Duration(clock.Load())) }
	probes := 0
	r.s.cfg.Store = slowStore{r.s.cfg.Store, func() error {
		clock.Add(int64(time.Hour))
		if probes++; probes == 3 {
			cancel()
		}
		return errors.New(strings.Repeat("x", queue.MaxRecordBytes)) // the reason is part of the beat
	}}
	if err := r.s.CheckHealth(ctx); err != nil || probes != 3 {
		t.Errorf("%d probes, %v, want 3", probes, err)
	}
	if n := strings.Count(log.String(), "could not publish the health of the coordinator"); n != 2 {
		t.Errorf("%d lines about beats, want one for each but the last probe", n)
	}
}

// patienceOfProbes is far more than three probes need.
const patienceOfProbes = 20 * time.Second

// countedStore lists as many results as it has.
type countedStore struct {
	storage.Store
	results, others int
}

func (s countedStore) List(context.Context, string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		for i := range s.results + s.others {
			file := manifest.FileTrace
			if i < s.results {
				file = manifest.FileResult
			}
			if !yield(storage.Info{Key: manifest.ItemKey(id(i%3), file)}, nil) {
				return
			}
		}
	}
}

// TestOtherResults counts the results of other campaigns in the output of a Run, and stops at the limit of keys.
func TestOtherResults(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := decidingRunner(t, &now, &strings.Builder{})
	r.ledger.Add(id(0))
	r.results = countedStore{results: 6, others: 5}
	if n, more := r.otherResults(t.Context()); n != 0 || more {
		t.Errorf("a cluster has a folder of its own: %d, %t", n, more)
	}
	r.s.cfg.run = &RunConfig{}
	for others, want := range map[int]bool{5: false, maxCounted - 6: false, maxCounted - 5: true} {
		r.results = countedStore{results: 6, others: others}
		if n, more := r.otherResults(t.Context()); n != 4 || more != want {
			t.Errorf("%d keys: %d results, more %t", 6+others, n, more)
		}
	}
}

package gpuworker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ddiff/manifest"
	"ddiff/queue"
)

// A worker leaves an item that it disputed to others, unless there are none.
func TestItemsLeftToOthers(t *testing.T) {
	t.Parallel()
	q := internalQueue(t, queue.Config{})
	l := leaseNew(t, q, 1)[0]
	own := []string{"other", "tester"}
	for name, c := range map[string]struct {
		marks queue.Marks
		peers int // -1: without Config.Peers
		err   error
		want  bool
	}{
		"disputed by another worker":       {queue.Marks{Disputed: own[:1]}, 2, nil, false},
		"disputed by this worker":          {queue.Marks{Disputed: own}, 1, nil, true},
		"without others":                   {queue.Marks{Disputed: own}, 0, nil, false},
		"with an unknown number of others": {queue.Marks{Disputed: own}, 0, errStore, true},
		"in one process":                   {queue.Marks{Disputed: own}, -1, nil, false},
		"passed often":                     {queue.Marks{Disputed: own, Passes: 60}, 1, nil, false},
	} {
		l = remarked(t, q, l, c.marks)
		w := quietWorker(t, func(cfg *Config) {
			if c.peers >= 0 {
				cfg.Peers = func(context.Context) (int, error) { return c.peers, c.err }
			}
		})
		if got := w.leavesToOthers(t.Context(), "a", l); got != c.want {
			t.Errorf("%s: left to others: %v", name, got)
		}
	}
	w := quietWorker(t, func(cfg *Config) { cfg.Peers = func(context.Context) (int, error) { return 1, nil } })
	w.breaker.Succeed("a", manifest.Item{Campaign: "a"})
	if w.leavesToOthers(t.Context(), "a", remarked(t, q, l, queue.Marks{Disputed: own, Passes: 5})) {
		t.Error("a worker that has restored an item passes one for the sixth time")
	}
}

// The least passed item counts. A fleet skips the campaign; a worker of one queue waits.
func TestPauseAfterPass(t *testing.T) {
	t.Parallel()
	q, work := internalQueue(t, queue.Config{}), &recordingWork{}
	leases := leaseNew(t, q, 2)
	leases[0] = remarked(t, q, leases[0], queue.Marks{Passes: 5})
	leases[1] = remarked(t, q, leases[1], queue.Marks{Passes: 1})
	fleet, alone := quietWorker(t, func(cfg *Config) { cfg.Work = work }), quietWorker(t)
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		fleet.pauseAfterPass(t.Context(), "a", leases)
		if len(work.calls) != 1 || time.Since(begin) != 0 {
			t.Fatalf("calls %q in %v, want one", work.calls, time.Since(begin))
		}
		suspended, err := time.ParseDuration(strings.TrimPrefix(work.calls[0], "suspend a "))
		must(t, err)
		alone.pauseAfterPass(t.Context(), "a", leases)
		for _, pause := range []time.Duration{suspended, time.Since(begin)} {
			if pause < time.Second || pause >= 3*time.Second {
				t.Errorf("a pause of %v after one pass", pause)
			}
		}
	})
}

// A worker pauses when an item that it passed comes back, and not before: the queue may have items for it.
func TestPauseWhenPassedItemReturns(t *testing.T) {
	t.Parallel()
	q, work := internalQueue(t, queue.Config{}), &recordingWork{}
	w := quietWorker(t, func(cfg *Config) {
		cfg.Work, cfg.Peers = work, func(context.Context) (int, error) { return 1, nil }
	})
	leases := leaseNew(t, q, 2)
	for i, l := range leases {
		leases[i] = remarked(t, q, l, queue.Marks{Disputed: []string{w.cfg.Name}})
	}
	for round := range 2 {
		for i := range leases {
			work.calls = nil
			if start, alone := w.admit(t.Context(), "a", leases[i:i+1]); len(start) != 0 || alone {
				t.Fatalf("round %d: item %d was started", round, i)
			}
			want := 0
			if round == 1 && i == 0 {
				want = 1
			}
			if len(work.calls) != want {
				t.Errorf("round %d, item %d: calls %q, want %d", round, i, work.calls, want)
			}
			leases[i] = leaseAgain(t, q, 1)[0]
		}
	}
}

// A second opinion names the other workers.
func TestSecondOpinion(t *testing.T) {
	t.Parallel()
	w := quietWorker(t)
	for want, disputed := range map[string][]string{
		"the item is bad": {"tester"},
		"the item is bad; worker other could not restore it either":    {"tester", "other"},
		"the item is bad; worker b, other could not restore it either": {"b", "tester", "other"},
		"the item is bad; worker other, b could not restore it either": {"other", "b"},
	} {
		if err := w.confirm(disputed, errItem); err.Error() != want || !errors.Is(err, errItem) {
			t.Errorf("%v: %v, want %s", disputed, err, want)
		}
	}
}

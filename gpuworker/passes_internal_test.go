package gpuworker

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ddiff/internal/queue"
	"ddiff/restore/item"
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
		"passed often":                     {queue.Marks{Disputed: own, Passes: 120}, 1, nil, false},
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
	// A worker that has restored an item passes one five times, another worker 120 times. Then it passes none for five minutes.
	for proven, limit := range map[bool]int{true: 5, false: 120} {
		clock := newStoppedClock()
		w := quietWorker(t, func(cfg *Config) {
			cfg.Peers, cfg.Now = func(context.Context) (int, error) { return 1, nil }, clock.now
		})
		if proven {
			w.breaker.Succeed("a", item.Item{Campaign: "a"})
		}
		for _, c := range []struct {
			after  time.Duration
			passes int
			want   bool
		}{{0, limit - 1, true}, {0, limit, false}, {5*time.Minute - 1, 0, false}, {1, limit - 1, true}} {
			clock.time = clock.time.Add(c.after)
			l = remarked(t, q, l, queue.Marks{Disputed: own, Passes: c.passes})
			if w.leavesToOthers(t.Context(), "a", l) != c.want {
				t.Errorf("proven %t: left to others after %d passes: %t", proven, c.passes, !c.want)
			}
		}
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

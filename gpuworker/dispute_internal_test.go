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

// A worker leaves an item that it disputed to others: five times, or sixty times while it has restored no item itself.
func TestItemsLeftToOthers(t *testing.T) {
	t.Parallel()
	q, clock := internalQueue(t, queue.Config{}), newStoppedClock()
	l := leaseNew(t, q, 1)[0]
	own := []string{"other", "tester"}
	for _, c := range []struct {
		name   string
		marks  queue.Marks
		proven bool
		peers  int
		err    error
		alone  bool // without Config.Peers
		want   bool
		paused bool // passes nothing for a while
	}{
		{"disputed by another worker", queue.Marks{Disputed: []string{"other"}}, true, 2, nil, false, false, false},
		{"disputed by this worker", queue.Marks{Disputed: own}, true, 1, nil, false, true, false},
		{"without others", queue.Marks{Disputed: own}, true, 0, nil, false, false, false},
		{"with an unknown number of others", queue.Marks{Disputed: own}, true, 0, errStore, false, true, false},
		{"in one process", queue.Marks{Disputed: own}, true, 1, nil, true, false, false},
		{"last pass", queue.Marks{Disputed: own, Passes: maxPasses - 1}, true, 1, nil, false, true, false},
		{"no pass left", queue.Marks{Disputed: own, Passes: maxPasses}, true, 1, nil, false, false, true},
		{"unproven", queue.Marks{Disputed: own, Passes: unprovenPasses - 1}, false, 1, nil, false, true, false},
		{"unproven, no pass left", queue.Marks{Disputed: own, Passes: unprovenPasses}, false, 1, nil, false, false, true},
	} {
		l = remarked(t, q, l, c.marks)
		w := quietWorker(t, func(cfg *Config) {
			cfg.Now = clock.now
			cfg.Peers = func(context.Context) (int, error) { return c.peers, c.err }
			if c.alone {
				cfg.Peers = nil
			}
		})
		if c.proven {
			w.breaker.Succeed("a", manifest.Item{ID: "good", Campaign: "a"})
		}
		if got := w.leavesToOthers(t.Context(), "a", l); got != c.want {
			t.Errorf("%s: left to others: %v", c.name, got)
		}
		end := time.Time{}
		if c.paused {
			end = clock.time.Add(5 * time.Minute)
		}
		if !w.passAgain.Equal(end) {
			t.Errorf("%s: passes again at %v, want %v", c.name, w.passAgain, end)
		}
		// The time without passes ends.
		w.passAgain = clock.time.Add(1)
		if w.leavesToOthers(t.Context(), "a", l) {
			t.Errorf("%s: left to others during the time without passes", c.name)
		}
		w.passAgain = clock.time
		if got := w.leavesToOthers(t.Context(), "a", l); got != c.want {
			t.Errorf("%s: left to others after the time without passes: %v", c.name, got)
		}
	}
}

// The pause doubles with the passes of the item that was passed least, and is random.
func TestPauseAfterPass(t *testing.T) {
	t.Parallel()
	q, work := internalQueue(t, queue.Config{}), &recordingWork{}
	leases := leaseNew(t, q, 2)
	for _, c := range []struct {
		passes int
		want   time.Duration
	}{{0, time.Second}, {1, 2 * time.Second}, {3, 8 * time.Second}, {maxPasses, 32 * time.Second}, {20, 32 * time.Second}} {
		leases[0] = remarked(t, q, leases[0], queue.Marks{Passes: c.passes + 1})
		leases[1] = remarked(t, q, leases[1], queue.Marks{Passes: c.passes})
		fleet, alone := quietWorker(t, func(cfg *Config) { cfg.Work = work }), quietWorker(t)
		synctest.Test(t, func(t *testing.T) {
			least, most := time.Hour, time.Duration(0)
			for range 200 {
				begin := time.Now()
				work.calls = nil
				fleet.pauseAfterPass(t.Context(), "a", leases)
				if len(work.calls) != 1 || time.Since(begin) != 0 {
					t.Fatalf("%d passes: calls %q in %v, want one", c.passes, work.calls, time.Since(begin))
				}
				suspended, err := time.ParseDuration(strings.TrimPrefix(work.calls[0], "suspend a "))
				must(t, err)
				begin = time.Now()
				alone.pauseAfterPass(t.Context(), "a", leases)
				least, most = min(least, suspended, time.Since(begin)), max(most, suspended, time.Since(begin))
			}
			// 400 pauses leave a tenth of the range at either end with a probability of 1e-18.
			if low, high := c.want/2, 3*c.want/2; least < low || least > low+c.want/10 || most >= high || most < high-c.want/10 {
				t.Errorf("%d passes: pauses from %v to %v, want %v to %v", c.passes, least, most, low, high)
			}
		})
	}
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

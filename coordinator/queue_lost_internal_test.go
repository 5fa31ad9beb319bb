package coordinator

import (
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/record"
	"ddiff/restore/item"
)

// runningRunner is a runner of a released campaign with two stored windows of two items. One window is published, and the
// queue holds nothing.
func runningRunner(t *testing.T, now *time.Time, log *strings.Builder) *runner {
	t.Helper()
	r := decidingRunner(t, now, log).onBoard(t)
	for n := range 2 {
		w := windowOf(r, n, 2*n, 2)
		putWindow(t, r, w)
		r.windows.add(w)
		r.outcomes.count(w)
	}
	err := r.save(t.Context(), func(c *record.Campaign) { c.Released, c.Phase = true, record.PhaseRunning })
	r.windows.published = 2
	must(t, err)
	return r
}

// Items are published again after the queue has lacked them for Config.Stall, and not before.
func TestLostItemsArePublishedAfterStall(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1e9, 0)
	now, log := begin, &strings.Builder{}
	r := runningRunner(t, &now, log)
	check := func(name string, want int) {
		t.Helper()
		if err := r.checkQueue(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		work := workIn(t, r)
		if len(work) != want {
			t.Errorf("%s: %d items in the queue, want %d", name, len(work), want)
		}
	}
	check("first", 0)
	if !r.queue.stalled.Equal(begin) {
		t.Errorf("stalled since %v", r.queue.stalled)
	}
	now = begin.Add(r.s.cfg.Stall - 1)
	check("almost", 0)
	if !r.queue.stalled.Equal(begin) {
		t.Errorf("stalled since %v after a second check", r.queue.stalled)
	}
	now = begin.Add(r.s.cfg.Stall)
	check("stalled", 4)
	if !strings.Contains(log.String(), "published lost items again") || !strings.Contains(log.String(), "items=4") || !r.queue.stalled.Equal(now) {
		t.Errorf("stalled since %v, log %s", r.queue.stalled, log)
	}
	// The leased items are in the queue.
	now = now.Add(time.Hour)
	if err := r.checkQueue(t.Context()); err != nil || !r.queue.stalled.IsZero() {
		t.Errorf("a complete queue stalls since %v, %v", r.queue.stalled, err)
	}
}

// Lost items with a result in storage are settled, and only published windows return to the queue.
func TestLostItemsWithResults(t *testing.T) {
	t.Parallel()
	now, log := time.Unix(1e9, 0), &strings.Builder{}
	r := runningRunner(t, &now, log)
	all := items(0, 4)
	putResult(t, r, all[0], item.OutcomeDone)
	must(t, r.restoreLost(t.Context()))
	if work := workIn(t, r); len(work) != 3 || work[all[0].ID] != nil || r.outcomes.ledger.State(all[0].ID) != ledger.Done {
		t.Errorf("%d items in the queue, item 0 is %v", len(work), r.outcomes.ledger.State(all[0].ID))
	}
	r.windows.published = 1
	if n, err := r.replaceQueue(t.Context()); err != nil || n != 1 {
		t.Errorf("%d items of published windows, %v", n, err)
	}
	if work := workIn(t, r); len(work) != 1 || work[all[1].ID] == nil {
		t.Errorf("%d items in the queue", len(work))
	}
	// All lost items have results: nothing is published.
	r.windows.published = 2
	for _, it := range all[1:] {
		putResult(t, r, it, item.OutcomeDone)
	}
	must(t, r.queue.Drop(t.Context()))
	must(t, r.openQueue(t.Context()))
	log.Reset()
	r.queue.stalled = now
	if err := r.restoreLost(t.Context()); err != nil || r.outcomes.ledger.Open() != 0 || !r.queue.stalled.IsZero() || strings.Contains(log.String(), "lost") {
		t.Errorf("%d pending items, stalled since %v, %v, log %s", r.outcomes.ledger.Open(), r.queue.stalled, err, log)
	}
	r.rec.Released = true
	must(t, r.recover(t.Context()))
	if text := log.String(); !strings.Contains(text, "it had lost no item") || strings.Contains(text, "published lost items") {
		t.Errorf("log %s", text)
	}
}

// A queue that is gone is opened again at once, with its items.
func TestQueueThatIsGone(t *testing.T) {
	t.Parallel()
	now, log := time.Unix(1e9, 0), &strings.Builder{}
	r := runningRunner(t, &now, log)
	must(t, r.queue.Remove(t.Context()))
	must(t, r.checkQueue(t.Context()))
	if work := workIn(t, r); len(work) != 4 || !strings.Contains(log.String(), "the campaign's queue is gone") {
		t.Errorf("%d items in the queue, log %s", len(work), log)
	}
}

// The items of a canary are published again in a new round, after a preflight.
func TestLostCanary(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for _, phase := range []record.Phase{record.PhaseCanary, record.PhasePaused} {
		r := runningRunner(t, &now, &strings.Builder{})
		must(t, r.save(t.Context(), func(c *record.Campaign) { c.Released, c.Phase, c.Canary = false, phase, 2 }))
		all := items(0, 4)
		r.trial.canary, r.trial.checked, r.queue.stalled = identities(all[:2]), &record.Checked{}, now
		round := r.rec.Round
		must(t, r.recover(t.Context()))
		after := record.PhaseQueued
		if phase == record.PhasePaused {
			after = phase
		}
		if r.trial.canary != nil || r.trial.checked != nil || !r.queue.stalled.IsZero() || r.rec.Round != round+1 || r.rec.Phase != after {
			t.Errorf("%s: canary %v, round %d, phase %s", phase, r.trial.canary, r.rec.Round, r.rec.Phase)
		}
	}
}

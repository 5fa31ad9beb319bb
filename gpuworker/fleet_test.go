package gpuworker_test

import (
	"slices"
	"testing"
	"time"

	"ddiff/internal/gpuworker/fleet"
	"ddiff/internal/queue"
	"ddiff/internal/record"
)

// inFlight is the number of items that a worker may have leased beyond the finished ones: one is prepared, one is on the
// device, and one is being written.
const inFlight = 3

// Ten items that are submitted after a thousand get half of the worker.
func TestSmallAndLargeCampaignShareEqually(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.fill("large", 1000)
	c.submit("large")
	cfg := c.simulated(time.Millisecond)
	g := &gate{Fleet: cfg.Work.(*fleet.Fleet)}
	cfg.Work = g
	w := start(t, cfg)
	c.store.waitFor(t, func(created []string) bool { return count(created, "large") >= 20 })
	g.Lock()
	c.fill("small", 10)
	c.submit("small")
	c.read()
	g.Unlock()
	created := c.store.waitFor(t, func(created []string) bool { return count(created, "small") == 10 })
	w.stop(t)
	// From the first to the last item of the small campaign, the campaigns alternate. An answer that comes late on a busy machine counts as
	// none: the small campaign then misses some turns.
	if large := count(created[slices.Index(created, "small"):], "large"); large < 9-inFlight || large > 30 {
		t.Errorf("%d items of the large campaign were done during 10 of the small campaign", large)
	}
}

// Preflights of a low class are leased while a high class has work, and at most every second lease is one.
func TestPreflightDoesNotWaitForHigherPriority(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.fill("high", 2000)
	c.submit("high", priority(record.PriorityHigh))
	f := c.fleet()
	var leased []string
	next := func() {
		t.Helper()
		a, leases, err := f.Next(t.Context(), patience)
		must(t, err)
		for _, l := range leases {
			must(t, l.Ack(t.Context()))
			leased = append(leased, a.Campaign)
		}
	}
	next()
	low := []string{"low-0", "low-1", "low-2", "low-3"}
	for _, id := range low {
		q := c.open(id, queue.Config{})
		publishPreflight(t, q)
		c.submit(id, priority(record.PriorityLow), func(r *record.Campaign) { r.Phase = record.PhasePreflight })
	}
	for len(leased)-count(leased, "high") < len(low) && len(leased) < 1500 {
		next()
		time.Sleep(2 * time.Millisecond) // a fleet learns of a campaign within a fifth of a second
	}
	for _, id := range low {
		if n := count(leased, id); n != 1 {
			t.Errorf("the preflight of %s was leased %d times during %d leases, want once", id, n, len(leased))
		}
	}
	for i := range leased[1:] {
		if leased[i] != "high" && leased[i+1] != "high" {
			t.Errorf("leases %d and %d are both preflights", i, i+1)
		}
	}
}

// A preflight on its second attempt, which runs alone, does not wait for the end of the work of a higher class.
func TestSuspectPreflightDoesNotWaitForHigherPriority(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	q := c.open("low", queue.Config{})
	publishPreflight(t, q)
	leases, err := q.Lease(t.Context(), 1, patience)
	must(t, err)
	must(t, leases[0].Retry(t.Context(), 0))
	c.fill("high", 1000)
	c.submit("high", priority(record.PriorityHigh))
	cfg := c.simulated(10 * time.Millisecond)
	g := &gate{Fleet: cfg.Work.(*fleet.Fleet)}
	cfg.Work = g
	w := start(t, cfg)
	c.store.waitFor(t, func(created []string) bool { return len(created) > 4 })
	g.Lock()
	c.submit("low", priority(record.PriorityLow), func(r *record.Campaign) { r.Phase = record.PhasePreflight })
	c.read()
	g.Unlock()
	waitUntil(t, "the preflight has no answer", func() bool {
		last, err := q.LastResult(t.Context())
		must(t, err)
		return last > 0
	})
	if n := len(c.store.waitFor(t, func([]string) bool { return true })); n > 500 { // a busy machine reads the answer late
		t.Errorf("the preflight was answered after %d items of the higher class", n)
	}
	w.stop(t)
}

// publishPreflight publishes a preflight for simulated workers.
func publishPreflight(t *testing.T, q *queue.Queue) {
	t.Helper()
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: record.ClassPreflight, ID: record.IDPreflight, Payload: []byte("{}")}}))
}

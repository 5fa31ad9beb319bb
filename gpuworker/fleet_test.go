package gpuworker_test

import (
	"slices"
	"testing"
	"time"

	"ddiff/manifest"
	"ddiff/queue"
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
	w := start(t, c.simulated(time.Millisecond))
	c.store.waitFor(t, func(created []string) bool { return count(created, "large") >= 20 })
	c.fill("small", 10)
	c.submit("small")
	created := c.store.waitFor(t, func(created []string) bool { return count(created, "small") == 10 })
	w.stop(t)
	first := slices.Index(created, "small")
	// From the first to the last item of the small campaign, the campaigns alternate.
	if large := count(created[first:], "large"); large < 9-inFlight || large > 9+inFlight {
		t.Errorf("%d items of the large campaign were done during 10 of the small campaign", large)
	}
	if first >= 900 {
		t.Errorf("the small campaign started after %d items of the large campaign", first)
	}
}

// Preflights of a low class are leased while a high class has work, and at most every second lease is one.
func TestPreflightDoesNotWaitForHigherPriority(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.fill("high", 2000)
	c.submit("high", priority(manifest.PriorityHigh))
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
		work := queue.Work{Class: manifest.ClassPreflight, ID: manifest.IDPreflight, Payload: []byte("{}")}
		must(t, q.PublishBatch(t.Context(), []queue.Work{work}))
		c.submit(id, priority(manifest.PriorityLow), func(r *manifest.Campaign) { r.Phase = manifest.PhasePreflight })
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

package gpuworker_test

import (
	"slices"
	"strings"
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

func TestHigherPriorityRunsFirst(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.fill("low", 300)
	c.submit("low", priority(manifest.PriorityLow), func(r *manifest.Campaign) { r.Weight = 1000 })
	w := start(t, c.simulated(time.Millisecond))
	c.store.waitFor(t, func(created []string) bool { return len(created) >= 10 })
	c.fill("high", 40)
	c.submit("high", priority(manifest.PriorityHigh))
	created := c.store.waitFor(t, func(created []string) bool { return count(created, "high") == 40 })
	w.stop(t)
	first := slices.Index(created, "high")
	if low := count(created[first:], "low"); low > inFlight {
		t.Errorf("%d items of the lower priority were done while the higher priority had work", low)
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

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.fill("one", 60)
	c.submit("one")
	w := start(t, c.simulated(5*time.Millisecond))
	c.store.waitFor(t, func(created []string) bool { return len(created) >= 10 })
	c.submit("one", wanted(manifest.WantPause))
	// Results of a second campaign show that the worker has read the board.
	c.fill("two", 10)
	c.submit("two")
	created := c.store.waitFor(t, func(created []string) bool { return count(created, "two") == 10 })
	first := slices.Index(created, "two")
	if more := count(created[first:], "one"); more > inFlight {
		t.Errorf("%d items of the paused campaign were done", more)
	}
	c.submit("one")
	created = c.store.waitFor(t, func(created []string) bool { return len(created) == 70 })
	if n := count(created, "one"); n != 60 {
		t.Errorf("the resumed campaign has %d results, want 60", n)
	}
	w.stop(t)
}

// The queue of a campaign is created after the campaign's record, removed, and created again.
func TestQueueAppearsAfterCampaign(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.submit("late")
	c.fill("other", 5)
	c.submit("other")
	w := start(t, c.simulated(time.Millisecond))
	c.store.waitFor(t, func(created []string) bool { return count(created, "other") == 5 })
	q := c.fill("late", 5)
	c.store.waitFor(t, func(created []string) bool { return count(created, "late") == 5 })
	must(t, q.Remove(t.Context()))
	c.open("late", queue.Config{})
	it := manifest.Item{ID: "late-again", Name: "again"}
	publish(t, q, it)
	c.store.waitFor(t, func(created []string) bool { return count(created, "late") == 6 })
	w.stop(t)
}

// A worker logs a campaign of a newer version once, and processes the other campaigns.
func TestCampaignOfNewerVersion(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	q := c.fill("newer", 3)
	for range 3 {
		c.submit("newer", func(r *manifest.Campaign) { r.Schema = manifest.RecordSchema + 1 })
	}
	must(t, c.board.Put(t.Context(), manifest.KeyCampaignPrefix+"broken", []byte("{")))
	c.fill("known", 3)
	c.submit("known")
	w := start(t, c.simulated(time.Millisecond))
	c.store.waitFor(t, func(created []string) bool { return count(created, "known") == 3 })
	c.submit("newer", func(r *manifest.Campaign) { r.Schema = manifest.RecordSchema + 1 })
	c.log.wait(t, "campaign.broken")
	w.stop(t)
	if n := strings.Count(c.log.String(), "that a newer version of ddiff submitted"); n != 1 {
		t.Errorf("the newer version is logged %d times, want once:\n%s", n, c.log)
	}
	if pending, inFlight, err := q.Depth(t.Context()); err != nil || pending != 3 || inFlight != 0 {
		t.Errorf("the campaign of a newer version has %d pending and %d leased items (%v), want 3 and 0", pending, inFlight, err)
	}
}

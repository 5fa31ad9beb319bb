package gpuworker_test

import (
	"strings"
	"testing"
	"time"

	"ddiff/manifest"
	"ddiff/queue"
)

// underway is how many items a worker may have leased beyond the one that it has finished:
// one on the device, one that is prepared, and one that is being written.
const underway = 3

// TestSmallCampaignBesideLarge submits ten items behind a thousand: each gets half.
func TestSmallCampaignBesideLarge(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.fill("large", 1000)
	c.submit("large")
	w := start(t, c.simulated(time.Millisecond))
	c.store.order(t, func(created []string) bool { return count(created, "large") >= 20 })
	c.fill("small", 10)
	c.submit("small")
	created := c.store.order(t, func(created []string) bool { return count(created, "small") == 10 })
	w.stop(t)
	first := 0
	for created[first] != "small" {
		first++
	}
	// Between the first and the last of the small one, the two take turns.
	if large := count(created[first:], "large"); large < 9-underway || large > 9+underway {
		t.Errorf("%d items of the large campaign were done beside 10 of the small one", large)
	}
	if first >= 900 {
		t.Errorf("the small campaign began after %d items of the large one", first)
	}
}

// TestWeights gives two campaigns shares of three and one.
func TestWeights(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.fill("heavy", 200)
	c.fill("light", 200)
	c.submit("heavy", weight(3))
	c.submit("light", weight(1))
	w := start(t, c.simulated(time.Millisecond))
	created := c.store.order(t, func(created []string) bool { return len(created) >= 100 })[:100]
	w.stop(t)
	if heavy := count(created, "heavy"); heavy < 75-2*underway || heavy > 75+2*underway {
		t.Errorf("of 100 items %d are of the campaign with three quarters of the weight", heavy)
	}
}

// TestPriority submits a campaign of a higher class: while it has work nothing else is done.
func TestPriority(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.fill("low", 300)
	c.submit("low", priority(manifest.PriorityLow), weight(1000))
	w := start(t, c.simulated(time.Millisecond))
	c.store.order(t, func(created []string) bool { return len(created) >= 10 })
	c.fill("high", 40)
	c.submit("high", priority(manifest.PriorityHigh))
	created := c.store.order(t, func(created []string) bool { return count(created, "high") == 40 })
	w.stop(t)
	first := 0
	for created[first] != "high" {
		first++
	}
	if low := count(created[first:], "low"); low > underway {
		t.Errorf("%d items of the lower class were done while the higher one had work", low)
	}
}

// TestPause stops a campaign and lets it go on.
func TestPause(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.fill("one", 60)
	c.submit("one")
	w := start(t, c.simulated(5*time.Millisecond))
	c.store.order(t, func(created []string) bool { return len(created) >= 10 })
	c.submit("one", wanted(manifest.WantPause))
	// A second campaign shows when the worker has heard of it.
	c.fill("two", 10)
	c.submit("two")
	created := c.store.order(t, func(created []string) bool { return count(created, "two") == 10 })
	first := 0
	for created[first] != "two" {
		first++
	}
	if more := count(created[first:], "one"); more > underway {
		t.Errorf("%d items of the paused campaign were done", more)
	}
	c.submit("one")
	created = c.store.order(t, func(created []string) bool { return len(created) == 70 })
	if n := count(created, "one"); n != 60 {
		t.Errorf("%d results of the campaign that was paused, want 60", n)
	}
	w.stop(t)
}

// TestCampaignBeforeItsQueue announces a campaign whose queue comes later, goes and comes
// again.
func TestCampaignBeforeItsQueue(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.submit("late")
	c.fill("other", 5)
	c.submit("other")
	w := start(t, c.simulated(time.Millisecond))
	c.store.order(t, func(created []string) bool { return count(created, "other") == 5 })
	q := c.fill("late", 5)
	c.store.order(t, func(created []string) bool { return count(created, "late") == 5 })
	must(t, q.Remove(t.Context()))
	c.open("late", queue.Config{})
	it := manifest.Item{ID: "late-again", Name: "again"}
	publish(t, q, it)
	c.store.order(t, func(created []string) bool { return count(created, "late") == 6 })
	w.stop(t)
}

// TestLaterVersion announces a campaign that this version cannot read: it says so once, and
// works on the others.
func TestLaterVersion(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	q := c.fill("later", 3)
	for range 3 {
		c.submit("later", func(r *manifest.Campaign) { r.Schema = manifest.RecordSchema + 1 })
	}
	must(t, c.board.Put(t.Context(), manifest.KeyCampaignPrefix+"broken", []byte("{")))
	c.fill("known", 3)
	c.submit("known")
	w := start(t, c.simulated(time.Millisecond))
	c.store.order(t, func(created []string) bool { return count(created, "known") == 3 })
	c.submit("later", func(r *manifest.Campaign) { r.Schema = manifest.RecordSchema + 1 })
	c.log.wait(t, "campaign.broken")
	w.stop(t)
	if n := strings.Count(c.log.String(), "submitted by a later version"); n != 1 {
		t.Errorf("the later version is mentioned %d times:\n%s", n, c.log)
	}
	if pending, inFlight, err := q.Depth(t.Context()); err != nil || pending != 3 || inFlight != 0 {
		t.Errorf("of the campaign of a later version %d items wait and %d are leased (%v)", pending, inFlight, err)
	}
}

// TestOnce ends a worker that has nothing to do any more.
func TestOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.fill("one", 5)
	c.submit("one")
	cfg := c.simulated(time.Millisecond)
	cfg.Once = 300 * time.Millisecond
	start(t, cfg).wait(t)
	c.store.order(t, func(created []string) bool { return len(created) == 5 })
	r := cfg.Simulate.Report()
	if r.Items != 5 || r.Workers != 1 || r.Busy <= 0 || r.Busy > 1 || r.P50 <= 0 || r.P99 < r.P50 {
		t.Errorf("the simulation measured %+v", r)
	}
}

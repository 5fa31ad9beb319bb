package coordinator_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/coordinator"
	"ddiff/manifest"
)

// TestRun takes a campaign from the dataset to the report.
func TestRun(t *testing.T) {
	t.Parallel()
	dir := images(t, 1, 2, 3)
	must(t, os.WriteFile(filepath.Join(dir, "broken.png"), []byte("no image"), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("no image"), 0o644))
	b := newBench(t, dir, "hdr", "inpaint_box")
	c := b.shard(t)
	wantCounts(t, c, coordinator.Counts{Items: 8, Failed: 2, Pending: 6})
	if !slices.Equal(b.skipped, []string{"notes.txt"}) {
		t.Errorf("skipped %v", b.skipped)
	}
	if n := c.PendingSteps(); n != 60 {
		t.Errorf("%d steps are pending, want 60", n)
	}
	items := b.lease(t, 6)
	var order []string
	for _, it := range items {
		order = append(order, key(it))
	}
	// Tasks stay together, so that neighbours share a batch.
	if want := []string{"image0 hdr", "image1 hdr", "image2 hdr", "image0 inpaint_box", "image1 inpaint_box", "image2 inpaint_box"}; !slices.Equal(order, want) {
		t.Errorf("published %v, want %v", order, want)
	}

	for i, it := range items {
		switch r := result(it, manifest.OutcomeDone, ""); i {
		case 0:
			b.tell(t, result(it, manifest.OutcomeFailed, "it is too dark"))
		case 1:
			b.tell(t, result(it, manifest.OutcomeDead, "the disk is on fire"))
		default:
			b.keep(t, r)
			b.tell(t, r)
		}
	}
	follow(t, c)
	want := coordinator.Counts{Items: 8, Done: 4, Failed: 3, Dead: 1}
	wantCounts(t, c, want)
	if len(b.finished) != 8 || b.finished["image0 hdr"].reason != "it is too dark" || b.finished["image1 hdr"].outcome != manifest.OutcomeDead ||
		!strings.Contains(b.finished["broken hdr"].reason, filepath.Join(dir, "broken.png")) {
		t.Errorf("told %+v", b.finished)
	}
	must(t, c.Close(t.Context()))
	wantCounts(t, c, want)
	for _, name := range []string{"results.csv", "summary.json", "index.html"} {
		data, err := b.store.Get(t.Context(), name)
		must(t, err)
		if lines := strings.Count(string(data), "\n"); name == "results.csv" && lines != 1+8 {
			t.Errorf("results.csv has %d lines, want a header and 8 rows", lines)
		}
	}

	// The next run publishes what is not done, and only that.
	c = b.shard(t)
	wantCounts(t, c, coordinator.Counts{Items: 8, Done: 4, Failed: 2, Pending: 2})
	var again []string
	for _, it := range b.lease(t, 2) {
		again = append(again, key(it))
	}
	if want := []string{"image0 hdr", "image1 hdr"}; !slices.Equal(again, want) {
		t.Errorf("published %v, want %v", again, want)
	}
	if !b.finished["image2 hdr"].found || b.finished["broken hdr"].found {
		t.Errorf("told %+v", b.finished)
	}
}

// TestDuplicates has rows of the same bytes: one piece of work, counted for each.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	b := newBench(t, images(t, 1, 2, 1, 1), "hdr")
	c := b.shard(t)
	wantCounts(t, c, coordinator.Counts{Items: 4, Pending: 4})
	for _, it := range b.lease(t, 2) {
		r := result(it, manifest.OutcomeDone, "")
		b.keep(t, r)
		b.tell(t, r)
	}
	follow(t, c)
	wantCounts(t, c, coordinator.Counts{Items: 4, Done: 4})
	must(t, c.Close(t.Context()))
	for range 2 {
		for i := range 4 {
			if got := b.finished[fmt.Sprintf("image%d hdr", i)]; got.outcome != manifest.OutcomeDone {
				t.Errorf("image%d is told as %+v", i, got)
			}
		}
		wantCounts(t, b.shard(t), coordinator.Counts{Items: 4, Done: 4})
	}
	data, err := b.store.Get(t.Context(), "results.csv")
	must(t, err)
	for i := range 4 {
		if n := strings.Count(string(data), fmt.Sprintf(",image%d,", i)); n != 1 {
			t.Errorf("results.csv has %d rows of image%d", n, i)
		}
	}
}

// TestStoredResults finds results of all kinds in storage.
func TestStoredResults(t *testing.T) {
	t.Parallel()
	b := newBench(t, images(t, 1, 2, 3, 4, 5), "hdr")
	b.shard(t)
	items := b.lease(t, 5)
	path := func(i int) string { return manifest.ItemKey(items[i].ID, manifest.FileResult) }
	// Another campaign has made it, under another name.
	other := items[0]
	other.Name, other.Campaign, other.Index = "elsewhere", "other", 99
	b.keep(t, result(other, manifest.OutcomeDone, ""))
	must(t, b.store.Put(t.Context(), path(1), []byte(`{"schema":1,`)))
	must(t, b.store.Put(t.Context(), path(2), []byte(`null`)))
	data, err := b.store.Get(t.Context(), path(0))
	must(t, err)
	must(t, b.store.Put(t.Context(), path(3), data))

	c := b.shard(t)
	wantCounts(t, c, coordinator.Counts{Items: 5, Done: 1, Failed: 3, Pending: 1})
	if left := b.lease(t, 1); left[0].Name != "image4" {
		t.Errorf("published %s", left[0].Name)
	}
	if got := b.finished["image0 hdr"]; got.outcome != manifest.OutcomeDone || !got.found {
		t.Errorf("image0 is told as %+v", got)
	}
	for i := 1; i <= 3; i++ {
		got := b.finished[key(items[i])]
		if got.outcome != manifest.OutcomeFailed || !strings.Contains(got.reason, path(i)) || !strings.Contains(got.reason, "remove the file and run again") {
			t.Errorf("%s is told as %+v", items[i].Name, got)
		}
	}
}

// TestLostEvent has a result in storage of which no event came: Close finds it.
func TestLostEvent(t *testing.T) {
	t.Parallel()
	b := newBench(t, images(t, 1, 2), "hdr")
	c := b.shard(t)
	b.keep(t, result(b.lease(t, 2)[1], manifest.OutcomeDone, ""))
	must(t, c.Close(t.Context()))
	wantCounts(t, c, coordinator.Counts{Items: 2, Done: 1, Pending: 1})
}

// TestFollowEnds ends with its context, and at once when there is nothing to wait for.
func TestFollowEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t, images(t, 1, 2), "hdr")
	c := b.shard(t)
	items := b.lease(t, 2)
	b.tell(t, result(items[0], manifest.OutcomeFailed, "no"))
	// The event of an item that nobody expects, and one that comes twice, change nothing.
	stranger := items[0]
	stranger.ID = "stranger"
	b.tell(t, result(stranger, manifest.OutcomeDone, ""))
	b.tell(t, result(items[0], manifest.OutcomeDone, ""))
	ctx, cancel := context.WithCancel(t.Context())
	b.heard = cancel // of the first item
	must(t, c.Follow(ctx))
	wantCounts(t, c, coordinator.Counts{Items: 2, Failed: 1, Pending: 1})

	c = b.shard(t)
	b.lease(t, 2)
	for _, it := range items {
		b.tell(t, result(it, manifest.OutcomeDone, ""))
	}
	follow(t, c)
	follow(t, c)
	wantCounts(t, c, coordinator.Counts{Items: 2, Done: 2})
}

// TestShardStops leaves a campaign whose dataset cannot be read as it is.
func TestShardStops(t *testing.T) {
	t.Parallel()
	b := newBench(t, images(t, 1), "hdr")
	b.shard(t)
	b.spec.Dataset.Path = t.TempDir()
	c, err := coordinator.New(b.config(t))
	must(t, err)
	if err := c.Shard(t.Context()); err == nil || !strings.Contains(err.Error(), "dataset has no rows") {
		t.Errorf("error is %v", err)
	}
	b.lease(t, 1) // the one of before
}

func TestConfig(t *testing.T) {
	t.Parallel()
	good := newBench(t, images(t, 1), "hdr").config(t)
	for _, c := range []struct {
		field  string
		change func(*coordinator.Config)
	}{
		{"Spec", func(c *coordinator.Config) { c.Spec = nil }},
		{"Prior", func(c *coordinator.Config) { c.Prior = nil }},
		{"Queue", func(c *coordinator.Config) { c.Queue = nil }},
		{"Store", func(c *coordinator.Config) { c.Store = nil }},
		{"Sources", func(c *coordinator.Config) { c.Sources = nil }},
		{"Logger", func(c *coordinator.Config) { c.Logger = nil }},
		{"Tracer", func(c *coordinator.Config) { c.Tracer = nil }},
	} {
		cfg := good
		c.change(&cfg)
		if _, err := coordinator.New(cfg); err == nil || !strings.Contains(err.Error(), c.field+" is missing") {
			t.Errorf("%s: error is %v", c.field, err)
		}
	}
}

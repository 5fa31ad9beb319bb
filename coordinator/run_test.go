package coordinator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/internal/record"
	"ddiff/internal/report"
	"ddiff/internal/report/aggregate"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// TestRun runs a campaign twice: with failures, and again for the items that are not done.
func TestRun(t *testing.T) {
	t.Parallel()
	dir := writeImages(t, 1, 2, 3)
	must(t, os.WriteFile(filepath.Join(dir, "broken.png"), []byte("no image"), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("no image"), 0o644))
	c := newLocalCampaign(t, dir, "hdr", "inpaint_box")
	c.spec.Budget.Items, c.spec.Notify = 1, "https://hooks.example.org/x" // for clusters: a Run does not pause
	r := c.start()
	items := r.lease(6)
	if !slices.Equal(r.skipped, []string{"notes.txt"}) || r.items != 8 || r.steps != 60 {
		t.Errorf("skipped %v, %d items, %d steps; want notes.txt, 8, 60", r.skipped, r.items, r.steps)
	}
	// Items of a task are neighbours, so that they share a batch.
	want := []string{"image0 hdr", "image1 hdr", "image2 hdr", "image0 inpaint_box", "image1 inpaint_box", "image2 inpaint_box"}
	if got := names(items); !slices.Equal(got, want) {
		t.Errorf("published %v, want %v", got, want)
	}
	unsolved := result(items[0], item.OutcomeFailed, "image is too dark")
	unsolved.Steps, unsolved.Seconds = 0, 0
	r.publish(unsolved)
	r.publish(result(items[1], item.OutcomeDead, "disk is on fire"))
	c.restore(r, items[2:])
	must(t, r.await())
	counts := record.Counts{Items: 8, Done: 4, Failed: 3, Dead: 1}
	r.wantCounts(counts)
	if r.items != 8 || r.steps != 50 {
		t.Errorf("in the end %d items, %d steps; want 8, and 50 without those of the item that had none", r.items, r.steps)
	}
	if len(r.finished) != 8 || r.announced("image0 hdr").reason != "image is too dark" ||
		r.announced("image1 hdr").outcome != item.OutcomeDead ||
		!strings.Contains(r.announced("broken hdr").reason, filepath.Join(dir, "broken.png")) {
		t.Errorf("announced %+v", r.finished)
	}
	summary, err := r.Close(t.Context())
	must(t, err)
	r.wantCounts(counts)
	if summary.Items != 8 || summary.Planned != 8 || summary.Done != 4 || summary.Failed != 3 || summary.Dead != 1 {
		t.Errorf("summary %+v", summary)
	}
	for _, name := range []string{"results.csv", "summary.json", "index.html"} {
		data, err := c.store.Get(t.Context(), name)
		must(t, err)
		if lines := strings.Count(string(data), "\n"); name == "results.csv" && lines != 1+8 {
			t.Errorf("results.csv has %d lines, want a header and 8 rows", lines)
		}
	}

	r = c.start()
	again := r.lease(2)
	if got, want := names(again), []string{"image0 hdr", "image1 hdr"}; !slices.Equal(got, want) {
		t.Errorf("the second run publishes %v, want %v", got, want)
	}
	if r.steps != 20 || !r.announced("image2 hdr").found || r.announced("broken hdr").found {
		t.Errorf("%d steps, announced %+v", r.steps, r.finished)
	}
	c.restore(r, again)
	must(t, r.await())
	r.wantCounts(record.Counts{Items: 8, Done: 6, Failed: 2})
}

// TestRunOfASecondCampaign uses the output of another campaign again.
func TestRunOfASecondCampaign(t *testing.T) {
	t.Parallel()
	dir := writeImages(t, 1, 2)
	c := newLocalCampaign(t, dir, "hdr", "inpaint_box")
	for i, tasks := range [][]string{{"hdr", "inpaint_box"}, {"motion_deblur", "hdr"}} {
		next := newLocalCampaign(t, dir, tasks...)
		next.store = c.store
		r := next.start()
		next.restore(r, r.lease(4-2*i))
		must(t, r.await())
		summary, err := r.Close(t.Context())
		must(t, err)
		if summary.Items != 4 || summary.Done != 4 {
			t.Errorf("campaign %d: %+v, want 4 of its own items", i, summary)
		}
		for task, want := range map[string]bool{"inpaint_box": i == 0, "hdr": true, "motion_deblur": i == 1} {
			if _, err := c.store.Get(t.Context(), "sheets/"+task+".png"); (err == nil) != want {
				t.Errorf("campaign %d: sheet of %s: %v", i, task, err)
			}
		}
	}
}

// TestRunDuplicates restores rows with equal bytes once and counts each of them.
func TestRunDuplicates(t *testing.T) {
	t.Parallel()
	c := newLocalCampaign(t, writeImages(t, 1, 2, 1, 1), "hdr")
	for _, found := range []bool{false, true} {
		r := c.start()
		if !found {
			c.restore(r, r.lease(2))
		}
		must(t, r.await())
		r.wantCounts(record.Counts{Items: 4, Done: 4})
		for i := range 4 {
			if got := r.announced(fmt.Sprintf("image%d hdr", i)); got.outcome != item.OutcomeDone || got.found != found {
				t.Errorf("image%d is announced as %+v, want done, found %v", i, got, found)
			}
		}
		_, err := r.Close(t.Context())
		must(t, err)
		data, err := c.store.Get(t.Context(), "results.csv")
		must(t, err)
		for i := range 4 {
			if n := strings.Count(string(data), fmt.Sprintf(",image%d,", i)); n != 1 {
				t.Errorf("results.csv has %d rows of image%d, want 1", n, i)
			}
		}
	}
}

// TestRunStoredResults starts with stored results: of another campaign, cut short, of no item, of the wrong item.
func TestRunStoredResults(t *testing.T) {
	t.Parallel()
	c := newLocalCampaign(t, writeImages(t, 1, 2, 3, 4, 5), "hdr")
	r := c.start()
	items := r.lease(5)
	r.interrupt()
	key := func(i int) string { return item.Key(items[i].ID, item.FileResult) }
	other := items[0]
	other.Name, other.Campaign, other.Index = "elsewhere", "other", 99
	c.put(result(other, item.OutcomeDone, ""))
	must(t, c.store.Put(t.Context(), key(1), []byte(`{"schema":1,`)))
	must(t, c.store.Put(t.Context(), key(2), []byte(`null`)))
	valid, err := c.store.Get(t.Context(), key(0))
	must(t, err)
	must(t, c.store.Put(t.Context(), key(3), valid))

	r = c.start()
	if left := r.lease(1); left[0].Name != "image4" {
		t.Errorf("published %s, want image4", left[0].Name)
	}
	if got := r.announced("image0 hdr"); got.outcome != item.OutcomeDone || !got.found {
		t.Errorf("image0 is announced as %+v", got)
	}
	for i := 1; i <= 3; i++ {
		got := r.announced(itemName(items[i]))
		if got.outcome != item.OutcomeFailed || got.found || !strings.HasPrefix(got.reason, "read "+key(i)+": ") ||
			!strings.HasSuffix(got.reason, "; move the item's folder away and run again") {
			t.Errorf("%s is announced as %+v", items[i].Name, got)
		}
	}
	r.interrupt()
	r.wantCounts(record.Counts{Items: 5, Done: 1, Failed: 3, Pending: 1})
	_, err = r.Close(t.Context())
	must(t, err)
	r.wantCounts(record.Counts{Items: 5, Done: 1, Failed: 3, Pending: 1})
	if data, err := c.store.Get(t.Context(), key(2)); err != nil || string(data) != "null" {
		t.Errorf("the stored result is %q now, error %v", data, err)
	}
}

// TestRunLostOutcomes interrupts a run after a result whose outcome was lost, and one whose outcome arrived late. Close
// settles both.
func TestRunLostOutcomes(t *testing.T) {
	t.Parallel()
	c := newLocalCampaign(t, writeImages(t, 1, 2, 3, 2), "hdr")
	r := c.start()
	items := r.lease(3)
	r.interrupt()
	c.put(result(items[1], item.OutcomeDone, ""))
	r.publish(result(items[2], item.OutcomeFailed, "late"))
	summary, err := r.Close(t.Context())
	must(t, err)
	r.wantCounts(record.Counts{Items: 4, Done: 2, Failed: 1, Pending: 1})
	if summary.Items != 3 || len(r.finished) != 3 || r.announced("image3 hdr").outcome != item.OutcomeDone {
		t.Errorf("summary %+v, announced %+v", summary, r.finished)
	}
}

// TestRunLostResult deletes the result of a settled item before the end of the run.
func TestRunLostResult(t *testing.T) {
	t.Parallel()
	c := newLocalCampaign(t, writeImages(t, 1, 2), "hdr")
	r := c.start()
	items := r.lease(2)
	c.restore(r, items)
	must(t, r.await())
	must(t, c.store.Delete(t.Context(), item.Key(items[0].ID, item.FileResult)))
	summary, err := r.Close(t.Context())
	must(t, err)
	r.wantCounts(record.Counts{Items: 2, Done: 1, Pending: 1})
	if summary.Failed != 1 {
		t.Errorf("summary %+v", summary)
	}
}

// TestRunIgnoresOtherOutcomes publishes the outcome of an unknown item, and a second outcome of a settled one.
func TestRunIgnoresOtherOutcomes(t *testing.T) {
	t.Parallel()
	c := newLocalCampaign(t, writeImages(t, 1, 2), "hdr")
	r := c.start()
	items := r.lease(2)
	r.publish(result(items[0], item.OutcomeFailed, "no"))
	unknown := items[0]
	unknown.ID = "unknown"
	r.publish(result(unknown, item.OutcomeDone, ""))
	r.publish(result(items[0], item.OutcomeDead, "again"))
	c.restore(r, items[1:])
	must(t, r.await())
	r.wantCounts(record.Counts{Items: 2, Done: 1, Failed: 1})
	if len(r.finished) != 2 {
		t.Errorf("announced %+v", r.finished)
	}
}

// TestRunBadDataset ends with the error of the dataset and counts nothing.
func TestRunBadDataset(t *testing.T) {
	t.Parallel()
	c := newLocalCampaign(t, t.TempDir(), "hdr")
	r := c.start()
	if err := r.await(); !errors.Is(err, manifest.ErrEmptyDataset) {
		t.Errorf("error %v, want ErrEmptyDataset", err)
	}
	r.wantCounts(record.Counts{})
}

func TestRunConfig(t *testing.T) {
	t.Parallel()
	c := newLocalCampaign(t, writeImages(t, 1), "hdr")
	valid := c.config(&localRun{t: t})
	for field, clear := range map[string]func(*coordinator.RunConfig){
		"Spec":    func(c *coordinator.RunConfig) { c.Spec = nil },
		"Prior":   func(c *coordinator.RunConfig) { c.Prior = nil },
		"Board":   func(c *coordinator.RunConfig) { c.Board = nil },
		"Open":    func(c *coordinator.RunConfig) { c.Open = nil },
		"Scratch": func(c *coordinator.RunConfig) { c.Scratch = nil },
		"Store":   func(c *coordinator.RunConfig) { c.Store = nil },
		"Sources": func(c *coordinator.RunConfig) { c.Sources = nil },
		"Logger":  func(c *coordinator.RunConfig) { c.Logger = nil },
		"Tracer":  func(c *coordinator.RunConfig) { c.Tracer = nil },
	} {
		cfg := valid
		clear(&cfg)
		if _, err := coordinator.NewRun(cfg); err == nil || !strings.Contains(err.Error(), field+" is missing") {
			t.Errorf("%s: error is %v", field, err)
		}
	}
}

// The store has a report of the first result while the others are restored.
func TestRunReportsResultsSoFar(t *testing.T) {
	t.Parallel()
	c := newLocalCampaign(t, writeImages(t, 1, 2), "hdr")
	reported := make(chan struct{}, 2)
	c.reported = func() { reported <- struct{}{} }
	r := c.start()
	items := r.lease(2)
	c.restore(r, items[:1])
	select {
	case <-reported:
	case <-time.After(patience):
		t.Fatal("there is no report of the first result")
	}
	data, err := c.store.Get(t.Context(), report.KeySummaryJSON)
	must(t, err)
	var summary aggregate.Summary
	must(t, json.Unmarshal(data, &summary))
	if summary.Done != 1 || summary.Planned != 2 {
		t.Errorf("the report has %d of %d items, want 1 of 2", summary.Done, summary.Planned)
	}
	c.restore(r, items[1:])
	must(t, r.await())
	if summary, err = r.Close(t.Context()); err != nil || summary.Done != 2 {
		t.Errorf("the last report has %d items, %v", summary.Done, err)
	}
}

// TestRunKeepsReport interrupts a second run of a complete campaign while it reads the dataset. The report of the first
// run must stay: the second one has not looked for all results.
func TestRunKeepsReport(t *testing.T) {
	t.Parallel()
	const rows = 300 // more than the first window
	c := newLocalCampaign(t, t.TempDir(), "hdr")
	hold := false // reading stops at the last row
	c.rows = func(ctx context.Context, _ manifest.Dataset, _ func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
		return func(yield func(manifest.Row, error) bool) {
			for i := range rows {
				if i == rows-1 && hold {
					<-ctx.Done()
					yield(manifest.Row{}, ctx.Err())
					return
				}
				if !yield(manifest.Row{
					Index: i, Name: fmt.Sprintf("row%03d", i), Image: "/nowhere.png",
					ImageSHA256: fmt.Sprintf("%064x", i+1), Width: 32, Height: 32,
				}, nil) {
					return
				}
			}
		}
	}
	r := c.start()
	c.restore(r, r.lease(rows))
	must(t, r.await())
	_, err := r.Close(t.Context())
	must(t, err)
	first, err := c.store.Get(t.Context(), "results.csv")
	must(t, err)

	hold = true
	found := make(chan struct{})
	announceFirst := sync.OnceFunc(func() { close(found) })
	c.finished = func(item.Result, bool) { announceFirst() }
	r = c.start()
	<-found
	r.interrupt()
	summary, err := r.Close(t.Context())
	must(t, err)
	if n := r.Counts().Items; n == 0 || n >= rows || summary.Items != 0 {
		t.Errorf("the interrupted run has %d items and a summary of %d", n, summary.Items)
	}
	second, err := c.store.Get(t.Context(), "results.csv")
	must(t, err)
	if !bytes.Equal(second, first) {
		t.Errorf("results.csv has %d bytes after the interrupted run, it had %d", len(second), len(first))
	}
}

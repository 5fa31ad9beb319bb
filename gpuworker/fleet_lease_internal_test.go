package gpuworker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ddiff/internal/regular"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// A lease with a wait takes the available items after the first; a released item of a cancelled campaign is dropped.
func TestLeaseAndReleaseOfItems(t *testing.T) {
	t.Parallel()
	q, attached := queueOf(t), 0
	f, _, _ := fleetOf(t, func(c *FleetConfig) {
		c.Attach = func(context.Context, string) (*queue.Queue, error) { attached++; return q, nil }
		c.Batch = 4
	})
	c := f.add(t, "test")
	fill := func(ids ...string) { fillQueue(t, q, ids...) }
	fill("a", "b", "c", "d", "e", "f")
	for _, want := range []int{4, 2, 0} {
		all, err := f.request(t.Context(), c, f.snapshotOf(c), 50*time.Millisecond)
		if err != nil || len(all) != want {
			t.Errorf("%d items, want %d, %v", len(all), want, err)
		}
		for _, l := range all {
			if err := l.Ack(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	for id, tt := range map[string]struct {
		wanted manifest.Wanted
		left   int
	}{"run": {manifest.WantRun, 1}, "pause": {manifest.WantPause, 1}, "cancel": {manifest.WantCancel, 0}, "now": {manifest.WantCancelNow, 0}} {
		fill(id)
		s := f.snapshotOf(c)
		all, err := f.request(t.Context(), c, s, 0)
		if err != nil || len(all) != 1 {
			t.Fatalf("%s: %d items, %v", id, len(all), err)
		}
		s.Wanted = tt.wanted
		f.release(t.Context(), s, all)
		if all, err = f.request(t.Context(), c, s, 0); err != nil || len(all) != tt.left {
			t.Errorf("%s: %d items are left, %v", id, len(all), err)
		}
		for _, l := range all {
			if err := l.Ack(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	if attached != 1 {
		t.Errorf("the queue was opened %d times", attached)
	}
	// Next leases the items of a campaign, and then waits in it.
	fill("g")
	a, all, err := f.Next(t.Context(), 0)
	if err != nil || len(all) != 1 || a.Campaign != "test" || a.Batch != 4 || a.Refuse == nil {
		t.Fatalf("%d items, %+v, %v", len(all), a, err)
	}
	if err := all[0].Ack(t.Context()); err != nil {
		t.Error(err)
	}
	if _, all, err = f.Next(t.Context(), time.Millisecond); err != nil || len(all) != 0 || c.empty.since.IsZero() {
		t.Errorf("%d items, %v", len(all), err)
	}
	a.Refuse(errors.New("no"))
	if _, all, err = f.Next(t.Context(), time.Millisecond); err != nil || len(all) != 0 || f.usable(c) {
		t.Errorf("a refused campaign: %d items, %v", len(all), err)
	}
}

// TestNextSkipsCampaignsWithoutWork: one call of Next asks one campaign after the other until one has an item, among the empty ones that are due,
// the others, and those that wait for their preflight.
func TestNextSkipsCampaignsWithoutWork(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(r *manifest.Campaign){
		"running":   func(*manifest.Campaign) {},
		"preflight": func(r *manifest.Campaign) { r.Phase = manifest.PhasePreflight },
	} {
		queues := map[string]*queue.Queue{"a": queueOf(t), "b": queueOf(t)}
		f, now, _ := fleetOf(t, func(c *FleetConfig) {
			c.Attach = func(_ context.Context, campaign string) (*queue.Queue, error) { return queues[campaign], nil }
		})
		a, b := f.add(t, "a", change), f.add(t, "b", change)
		for id, empty := range map[string]bool{"x": false, "y": true} {
			f.setSkipPreflight(false)
			if empty {
				a.empty.since, b.empty.since = now.now.Add(-time.Minute), now.now.Add(-time.Minute)
				a.empty.check, b.empty.check = now.now.Add(-2*time.Second), now.now.Add(-time.Second)
			} else {
				a.empty, b.empty = emptiness{}, emptiness{}
			}
			fillQueue(t, queues["b"], id)
			assigned, all, err := f.Next(t.Context(), 0)
			if err != nil || len(all) != 1 || assigned.Campaign != "b" {
				t.Fatalf("%s, found empty before %v: %d items of campaign %q, %v", name, empty, len(all), assigned.Campaign, err)
			}
			if err := all[0].Ack(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A file is fetched once, and again when its copy is damaged. A file that no retry could read is unusable.
func TestFetchOfPrior(t *testing.T) {
	t.Parallel()
	_, dir := workerOf(t)
	if err := dir.Put(t.Context(), "priors/a", []byte("model")); err != nil {
		t.Fatal(err)
	}
	reads := 0
	s := faulty{Dir: dir, get: func(string) error { reads++; return nil }}
	p := priorFiles{dir: t.TempDir(), store: s, kind: "prior", unusable: ErrPriorFile}
	from := manifest.PriorFile{Key: "priors/a", SHA256: regular.SHA256([]byte("model"))}
	for want := range 2 {
		for range 2 {
			if data, err := p.read(t.Context(), from); err != nil || string(data) != "model" || reads != want+1 {
				t.Errorf("%q, %v, %d reads", data, err, reads)
			}
		}
		if err := os.WriteFile(p.file(from.SHA256), []byte("other"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	other := regular.SHA256([]byte("other"))
	for name, bad := range map[string]manifest.PriorFile{
		"digest": {Key: "priors/a", SHA256: other}, "no digest": {Key: "priors/a", SHA256: "x"},
		"missing": {Key: "priors/b", SHA256: other}, "bad key": {Key: "../b", SHA256: other}, "bundled": {SHA256: other},
	} {
		if data, err := p.read(t.Context(), bad); data != nil && name != "bundled" || !errors.Is(err, ErrPriorFile) {
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
	}
	down := p
	down.store, down.dir = faulty{Dir: dir, get: func(string) error { return storage.ErrUnavailable }}, t.TempDir()
	if _, err := down.read(t.Context(), from); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, ErrPriorFile) {
		t.Errorf("an unavailable store: %v", err)
	}
	// Another process holds the lock.
	lock, err := storage.AcquireLock(filepath.Join(p.dir, "locks", other))
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.lock(ended, other); !errors.Is(err, context.Canceled) {
		t.Errorf("a held lock: %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	if lock, err = p.lock(t.Context(), other); err != nil || lock.Unlock() != nil {
		t.Errorf("a free lock: %v", err)
	}
	if err := p.checkWritable(); err != nil {
		t.Error(err)
	}
	p.dir = filepath.Join(p.file(from.SHA256), "below")
	if err := p.checkWritable(); err == nil {
		t.Error("a folder below a file is writable")
	}
}

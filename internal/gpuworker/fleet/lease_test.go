package fleet

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ddiff/internal/gpuworker/enginecache"
	"ddiff/internal/gpuworker/workertest"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/restore"
)

// A lease with a wait takes the available items after the first; a released item of a cancelled campaign is dropped.
func TestLeaseAndReleaseOfItems(t *testing.T) {
	t.Parallel()
	q, attached, log := workertest.Queue(t, queue.Config{}), 0, &strings.Builder{}
	f, _, _ := fleetOf(t, func(c *Config) {
		c.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		c.Attach = func(context.Context, string) (*queue.Queue, error) { attached++; return q, nil }
		c.Batch = 4
	})
	c := f.add(t, "test")
	fill := func(ids ...string) { workertest.Fill(t, q, ids...) }
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
	if log.Len() > 0 {
		t.Errorf("log: %s", log)
	}
	for id, tt := range map[string]struct {
		wanted record.Wanted
		left   int
	}{"run": {record.WantRun, 1}, "pause": {record.WantPause, 1}, "cancel": {record.WantCancel, 0}, "now": {record.WantCancelNow, 0}} {
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
	for name, change := range map[string]func(r *record.Campaign){
		"running":   func(*record.Campaign) {},
		"preflight": func(r *record.Campaign) { r.Phase = record.PhasePreflight },
	} {
		queues := map[string]*queue.Queue{"a": workertest.Queue(t, queue.Config{MaxAttempts: 2}), "b": workertest.Queue(t, queue.Config{MaxAttempts: 2})}
		f, now, _ := fleetOf(t, func(c *Config) {
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
			workertest.Fill(t, queues["b"], id)
			assigned, all, err := f.Next(t.Context(), 0)
			if err != nil || len(all) != 1 || assigned.Campaign != "b" {
				t.Fatalf("%s, found empty before %v: %d items of campaign %q, %v", name, empty, len(all), assigned.Campaign, err)
			}
			must(t, all[0].Ack(t.Context()))
		}
	}
}

// A worker that cannot use the prior leases the preflight only: its record of the campaign may be older than the items in the queue.
func TestItemsOfUnusablePriorAreReleased(t *testing.T) {
	t.Parallel()
	q := workertest.Queue(t, queue.Config{})
	f, now, log := fleetOf(t, func(c *Config) {
		c.Attach = func(context.Context, string) (*queue.Queue, error) { return q, nil }
		c.Engines = &opener{err: enginecache.ErrPriorFile}
	})
	c := f.add(t, "test", func(r *record.Campaign) { r.Phase = record.PhasePreflight })
	workertest.Fill(t, q, "item")
	if _, all, err := f.lease(t.Context(), c, 0); err != nil || len(all) != 0 || f.usable(c) || !strings.Contains(log.String(), enginecache.ErrPriorFile.Error()) {
		t.Errorf("%d items, %v, log %s", len(all), err, log)
	}
	all, err := q.Lease(t.Context(), 1, time.Minute)
	if err != nil || len(all) != 1 || all[0].Attempt() != 1 {
		t.Fatalf("%d items are left, %v", len(all), err)
	}
	must(t, all[0].Ack(t.Context()))
	now.pass(errorPause)
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: record.ClassPreflight, ID: record.IDPreflight, Payload: []byte("{}")}}))
	a, all, err := f.lease(t.Context(), c, time.Second)
	if err != nil || len(all) != 1 || !errors.Is(a.EngineError, enginecache.ErrPriorFile) {
		t.Errorf("%d preflights, %+v, %v", len(all), a, err)
	}
}

// slowEngines is a cache whose priors take long to open.
type slowEngines struct {
	opener
	open func()
}

func (s *slowEngines) Acquire(ctx context.Context, p record.PriorFile) (*restore.Engine, func(), error) {
	s.open()
	return s.opener.Acquire(ctx, p)
}

// A lease does not expire while the worker opens the prior.
func TestLeaseWhilePriorOpens(t *testing.T) {
	t.Parallel()
	q, redelivered := workertest.Queue(t, queue.Config{AckWait: 300 * time.Millisecond}), 0
	f, _, _ := fleetOf(t, func(c *Config) {
		c.Attach = func(context.Context, string) (*queue.Queue, error) { return q, nil }
		c.Engines = &slowEngines{opener{}, func() {
			all, err := q.Lease(t.Context(), 1, time.Second)
			must(t, err)
			redelivered = len(all)
		}}
	})
	c := f.add(t, "test")
	workertest.Fill(t, q, "item")
	if _, all, err := f.lease(t.Context(), c, 0); err != nil || len(all) != 1 || redelivered != 0 {
		t.Errorf("%d items, %d of them delivered again, %v", len(all), redelivered, err)
	}
}

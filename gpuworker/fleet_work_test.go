package gpuworker_test

import (
	"context"
	"log/slog"
	"math/bits"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/gpuworker"
	"ddiff/internal/gpuworker/fleet"
	"ddiff/internal/gpuworker/tuner"
	"ddiff/internal/gpuworker/workertest"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/regular"
	"ddiff/restore/item"
	"ddiff/storage"
)

// itemsFor returns n items with a prior.
func itemsFor(t *testing.T, p record.PriorFile, n int) []item.Item {
	t.Helper()
	all := items(t, n)
	for i := range all {
		all[i] = with(t, all[i], func(it *item.Item) { it.Prior = p.SHA256 })
	}
	return all
}

// worker configures a worker that computes in batches of up to n items.
func (c *cluster) worker(n int) gpuworker.Config {
	cfg := config(c.t, nil, nil)
	e := c.engines()
	cfg.Work = c.fleet(func(f *fleet.Config) { f.Engines, f.Batch = e, n })
	cfg.TolerateQueueErrors = true
	return cfg
}

func prefixed(t *testing.T, s storage.Store, prefix string) *storage.Prefixed {
	t.Helper()
	p, err := storage.NewPrefixed(s, prefix)
	must(t, err)
	return p
}

// Two campaigns have different priors. A third campaign has a wrong digest of its prior, and its items stay in the queue.
func TestFleetRestoresCampaignsOfSeveralPriors(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	one, two := c.prior(workertest.Share(t, 0.1)), c.prior(workertest.Share(t, 0.2))
	bad := one
	bad.SHA256 = regular.SHA256([]byte("something else"))
	queues, all := map[string]*queue.Queue{}, map[string][]item.Item{}
	for name, p := range map[string]record.PriorFile{"one": one, "two": two, "bad": bad} {
		queues[name], all[name] = c.open(name, queue.Config{}), itemsFor(t, p, 3)
		publish(t, queues[name], all[name]...)
		c.submit(name, func(r *record.Campaign) { r.Prior = p })
	}
	w := start(t, c.worker(2))
	for _, name := range []string{"one", "two"} {
		for _, r := range results(t, queues[name], 3) {
			if r.Outcome != item.OutcomeDone {
				t.Errorf("item %s of campaign %s is %s: %s", r.Item.Name, name, r.Outcome, r.Reason)
			}
		}
		wantEmpty(t, queues[name])
		for _, it := range all[name] {
			wantStored(t, prefixed(t, c.store, "out/"+name), it.ID)
		}
	}
	c.log.wait(t, "submit the campaign again")
	w.stop(t)
	if pending, inFlight, err := queues["bad"].Depth(t.Context()); err != nil || pending != 3 || inFlight != 0 {
		t.Errorf("the campaign with a wrong prior has %d pending and %d leased items (%v), want 3 and 0", pending, inFlight, err)
	}
}

// assignments is a dispatcher that records the last assignment.
type assignments struct {
	*fleet.Fleet
	last atomic.Pointer[gpuworker.Assignment]
}

func (a *assignments) Next(ctx context.Context, wait time.Duration) (gpuworker.Assignment, []*queue.Lease, error) {
	out, leases, err := a.Fleet.Next(ctx, wait)
	if len(leases) > 0 {
		a.last.Store(&out)
	}
	return out, leases, err
}

// An immediate cancellation stops a campaign during a batch. It leaves no files, and the worker processes another campaign.
func TestCancelNow(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.prior(workertest.Share(t, 0.1))
	doomed, other := c.open("doomed", queue.Config{}), c.open("other", queue.Config{})
	publish(t, doomed, itemsFor(t, p, 4)...)
	c.submit("doomed", func(r *record.Campaign) { r.Prior = p })
	cfg, pace := c.worker(2), newPace()
	work := &assignments{Fleet: cfg.Work.(*fleet.Fleet)}
	cfg.Work = work
	var paced atomic.Bool
	paced.Store(true)
	cfg.Steps = func(n int) {
		if paced.Load() {
			pace.steps(n)
		}
	}
	w := start(t, cfg)
	<-pace.made
	c.submit("doomed", func(r *record.Campaign) { r.Prior, r.Wanted = p, record.WantCancelNow })
	select {
	case <-work.last.Load().Lifetime.Done():
	case <-time.After(patience):
		t.Fatal("timeout: the campaign's items are not cancelled")
	}
	paced.Store(false)
	pace.next <- struct{}{}
	wantEmpty(t, doomed)
	all := itemsFor(t, p, 2)
	publish(t, other, all...)
	c.submit("other", func(r *record.Campaign) { r.Prior = p })
	results(t, other, 2)
	w.stop(t)
	for info, err := range c.store.List(t.Context(), "out/doomed/") {
		must(t, err)
		t.Errorf("the cancelled campaign has %s", info.Key)
	}
	if last, err := doomed.LastResult(t.Context()); err != nil || last != 0 {
		t.Errorf("the cancelled campaign has %d results (%v)", last, err)
	}
}

// Items that have results are published again: they are settled although their files are deleted.
func TestFinishedItemIsSettledWithoutItsFiles(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.prior(workertest.Share(t, 0.1))
	all := itemsFor(t, p, 3)
	first := c.open("first", queue.Config{})
	publish(t, first, all...)
	c.submit("first", func(r *record.Campaign) { r.Prior, r.Output = p, "out/shared" })
	w := start(t, c.worker(4))
	done := results(t, first, 3)
	w.stop(t)
	for _, it := range all {
		must(t, os.Remove(it.Image.Path))
	}
	again := c.open("again", queue.Config{AckWait: 50 * time.Millisecond, MaxAttempts: 1})
	publish(t, again, all...)
	// An item without attempts left is done too.
	for range 2 {
		_, err := again.Lease(t.Context(), 1, patience)
		must(t, err)
	}
	c.submit("again", func(r *record.Campaign) { r.Prior, r.Output = p, "out/shared" })
	w = start(t, c.worker(4))
	got := results(t, again, 3)
	w.stop(t)
	wantEmpty(t, again)
	for name, r := range got {
		if r.Outcome != item.OutcomeDone || !r.Finished.Equal(done[name].Finished) {
			t.Errorf("item %s is %s, finished at %v: %s", name, r.Outcome, r.Finished, r.Reason)
		}
	}
}

// A worker measures the best batch size on the items of a campaign.
func TestWorkerTunesBatchSize(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.prior(workertest.Share(t, 0.1))
	q := c.open("tuned", queue.Config{})
	all := itemsFor(t, p, 24)
	publish(t, q, all...)
	c.submit("tuned", func(r *record.Campaign) { r.Prior = p })
	cfg := config(t, nil, nil)
	cfg.Tuner = tuner.New(slog.New(slog.DiscardHandler))
	e := c.engines()
	cfg.Work = c.fleet(func(f *fleet.Config) { f.Engines, f.Batch, f.Tuner = e, 0, cfg.Tuner })
	w := start(t, cfg)
	got := results(t, q, 24)
	w.stop(t)
	ones := 0
	for name, r := range got {
		if r.Outcome != item.OutcomeDone || bits.OnesCount(uint(r.Batch)) != 1 {
			t.Errorf("item %s is %s in a batch of %d", name, r.Outcome, r.Batch)
		}
		if r.Batch == 1 {
			ones++
		}
	}
	if ones == 0 {
		t.Error("no item was solved alone, but the search starts with batches of 1")
	}
	// The batch size does not change the results.
	s, reference := prefixed(t, c.store, "out/tuned"), newStore(t)
	alone := newQueue(t, queue.Config{})
	publish(t, alone, all...)
	cfg = config(t, alone, reference)
	engine, done, err := e.Acquire(t.Context(), p)
	must(t, err)
	defer done()
	single(&cfg, func(s *gpuworker.Single) { s.Items.Engine, s.Items.Batch = engine, 1 })
	w = start(t, cfg)
	results(t, alone, 24)
	w.stop(t)
	for _, it := range all {
		if string(samples(t, s, it.ID)) != string(samples(t, reference, it.ID)) {
			t.Errorf("item %s differs from the item that was solved alone", it.Name)
		}
	}
}

// The queue is removed while a worker solves an item: the result is kept, and the worker continues after the queue is
// created again.
func TestWorkerSurvivesRemovalOfQueue(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.prior(workertest.Share(t, 0.1))
	q := c.open("one", queue.Config{})
	all := itemsFor(t, p, 2)
	publish(t, q, all[0])
	c.submit("one", func(r *record.Campaign) { r.Prior = p })
	cfg, pace := c.worker(1), newPace()
	cfg.Steps = pace.steps
	w := start(t, cfg)
	<-pace.made
	must(t, q.Remove(t.Context()))
	go func() {
		for range pace.made {
		}
	}()
	close(pace.next)
	s := prefixed(t, c.store, "out/one")
	wantResult := func(it item.Item) {
		t.Helper()
		waitUntil(t, "an item has no result", func() bool {
			_, err := s.Get(context.Background(), item.Key(it.ID, item.FileResult))
			return err == nil
		})
	}
	wantResult(all[0])
	q = c.open("one", queue.Config{})
	publish(t, q, all...)
	wantResult(all[1])
	wantEmpty(t, q)
	w.stop(t)
	close(pace.made)
	for _, it := range all {
		wantStored(t, s, it.ID)
	}
	if strings.Contains(c.log.String(), "lease work") {
		t.Errorf("log:\n%s", c.log)
	}
}

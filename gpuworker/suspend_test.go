package gpuworker_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/gpuworker"
	"ddiff/internal/gpuworker/fleet"
	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/gpuworker/workertest"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

// refusing is a store of a worker whose writes are refused while denied is set.
type refusing struct {
	store
	only   string // the prefix of the refused keys
	denied atomic.Bool
	tried  atomic.Int32 // refused writes of a file that each item has
}

func (r *refusing) refuse(key string) error {
	if !r.denied.Load() || !strings.HasPrefix(key, r.only) {
		return nil
	}
	if strings.HasSuffix(key, item.FileData) {
		r.tried.Add(1)
	}
	return fmt.Errorf("put %s: %w: 403", key, storage.ErrReadOnly)
}

func (r *refusing) Put(ctx context.Context, key string, data []byte) error {
	if err := r.refuse(key); err != nil {
		return err
	}
	return r.store.Put(ctx, key, data)
}

func (r *refusing) Create(ctx context.Context, key string, data []byte) error {
	if err := r.refuse(key); err != nil {
		return err
	}
	return r.store.Create(ctx, key, data)
}

// onStore sets the store of a worker, small batches, and quick tests of the environment.
func onStore(s store) func(*gpuworker.Config) {
	return func(cfg *gpuworker.Config) {
		cfg.ProbePause = 10 * time.Millisecond
		single(cfg, func(w *gpuworker.Single) { w.Items.Store, w.Items.Batch = s, 2 })
	}
}

// TestRefusedWorkerStopsLeasing runs a worker without permission to write beside a healthy one, with one attempt.
func TestRefusedWorkerStopsLeasing(t *testing.T) {
	t.Parallel()
	h := newHost(t, newStore(t), queue.Config{AckWait: patience, MaxAttempts: 1})
	bad := &refusing{store: h.store}
	bad.denied.Store(true)
	publish(t, h.queue, items(t, 20)...)
	sick := h.begin(h.config("sick", onStore(bad)))
	waitUntil(t, "the sick worker is not suspended", func() bool { return strings.Contains(sick.Beat().Suspended, "not writable") })
	healthy := h.begin(h.config("healthy", onStore(h.store)))
	wantDone(t, results(t, h.queue, 20))
	if reason := healthy.Beat().Suspended; reason != "" {
		t.Errorf("the healthy worker is suspended: %s", reason)
	}
	// Three failures suspend the worker; each of its stages may hold another batch of two.
	if n := bad.tried.Load(); n > 3+3*2 {
		t.Errorf("the sick worker tried to write %d items", n)
	}
	wantEmpty(t, h.queue)

	// The permission returns: the worker comes back by itself.
	bad.denied.Store(false)
	waitUntil(t, "the worker stays suspended", func() bool { return sick.Beat().Suspended == "" })
}

// TestFileThatIsAlwaysRefusedIsBuried: one file is refused, and the environment passes its tests.
func TestFileThatIsAlwaysRefusedIsBuried(t *testing.T) {
	t.Parallel()
	h := newHost(t, newStore(t), queue.Config{AckWait: patience, MaxAttempts: 1})
	all := items(t, 2)
	publish(t, h.queue, all[1])
	w := h.begin(h.config("w", from(lying{denied: map[string]bool{all[0].Image.Path: true}}, 0)))
	wantDone(t, results(t, h.queue, 1)) // now the worker knows a good file
	publish(t, h.queue, all[0])
	r := results(t, h.queue, 2)[all[0].Name]
	if r.Outcome != item.OutcomeDead || !strings.Contains(r.Reason, "11 failures of the environment, the last while it ran alone") {
		t.Errorf("the item is %s: %s", r.Outcome, r.Reason)
	}
	wantEmpty(t, h.queue)
	waitUntil(t, "the worker stays suspended", func() bool { return w.Beat().Suspended == "" })
}

// TestItemsThatFailDespitePassedTests: the store refuses results, but not the objects of tests. No item is dead.
func TestItemsThatFailDespitePassedTests(t *testing.T) {
	t.Parallel()
	h := newHost(t, newStore(t), queue.Config{AckWait: patience, MaxAttempts: 1})
	bad := &refusing{store: h.store, only: "items/"}
	bad.denied.Store(true)
	publish(t, h.queue, items(t, 1)...)
	h.begin(h.config("w", onStore(bad), func(cfg *gpuworker.Config) { cfg.PauseAfter, cfg.ProbePause = 200*time.Millisecond, time.Millisecond }))
	waitUntil(t, "too few writes", func() bool { return bad.tried.Load() > 12 }) // more than the faults after which an item may be dead
	bad.denied.Store(false)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	reports := 0
	for event, err := range h.queue.Results(ctx, 0) {
		must(t, err)
		if event.ID == record.IDFault {
			reports++
			continue
		}
		if n := len(dead(t, h.queue)); n != 0 || reports == 0 {
			t.Errorf("%d dead items, %d reports", n, reports)
		}
		return
	}
	t.Error("no result")
}

// refusedSource refuses the files below a directory.
type refusedSource struct {
	manifest.Files
	dir    string
	denied *atomic.Bool
}

func (r refusedSource) Get(ctx context.Context, path string) ([]byte, error) {
	if strings.HasPrefix(path, r.dir) && r.denied.Load() {
		return nil, fmt.Errorf("get %s: %w", path, storage.ErrAccess)
	}
	return r.Files.Get(ctx, path)
}

// moveFiles moves the images of items to the campaign bad, and returns their folder.
func moveFiles(t *testing.T, all []item.Item) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for i, it := range all {
		path := filepath.Join(dir, fmt.Sprint(i))
		must(t, os.Rename(it.Image.Path, path))
		all[i].Campaign, all[i].Image.Path = "bad", path
	}
	return dir
}

// TestLostFilesOfOneCampaignKeepNoWorkerSuspended: the store fails while a worker has an item of a campaign, and when the
// store is back, the files of this campaign are lost.
func TestLostFilesOfOneCampaignKeepNoWorkerSuspended(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.prior(workertest.Share(t, 0.1))
	bad, good := itemsFor(t, p, 6), itemsFor(t, p, 6)
	dir := moveFiles(t, bad)
	denied, unwritable := new(atomic.Bool), &refusing{store: c.store}
	unwritable.denied.Store(true)
	cfg, e := config(t, nil, nil), c.engines()
	cfg.Work = c.fleet(func(f *fleet.Config) {
		f.Engines, f.Batch, f.Sources, f.Store = e, 2, refusedSource{dir: dir, denied: denied}, unwritable
	})
	cfg.ProbePause, cfg.TolerateQueueErrors = 10*time.Millisecond, true
	queues := map[string]*queue.Queue{"bad": c.open("bad", queue.Config{MaxAttempts: 1}), "good": c.open("good", queue.Config{MaxAttempts: 1})}
	publish(t, queues["bad"], bad...)
	for name := range queues {
		c.submit(name, func(r *record.Campaign) { r.Prior = p })
	}
	w, r := begin(t, cfg)
	waitUntil(t, "the worker is not suspended", func() bool { b := w.Beat(); return b.Suspended != "" && b.SuspendedCampaign == "" })
	denied.Store(true)
	unwritable.denied.Store(false)
	publish(t, queues["good"], good...)
	wantDone(t, results(t, queues["good"], 6))
	denied.Store(false)
	wantDone(t, results(t, queues["bad"], 6))
	r.stop(t)
}

// hangingSource refuses files until it hangs.
type hangingSource struct {
	manifest.Files
	hangs atomic.Bool
	begun chan struct{} // receives each read that hangs
	end   chan struct{}
}

func (h *hangingSource) Get(_ context.Context, path string) ([]byte, error) {
	if !h.hangs.Load() {
		return nil, fmt.Errorf("get %s: %w", path, storage.ErrAccess)
	}
	h.begun <- struct{}{}
	<-h.end
	return nil, fmt.Errorf("get %s: %w", path, storage.ErrAccess)
}

// TestTestOfFilesThatHangs: the files of a suspended campaign hang when the worker tests them. It holds no lease
// meanwhile, and its watchdog ends it.
func TestTestOfFilesThatHangs(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.prior(workertest.Share(t, 0.1))
	source := &hangingSource{begun: make(chan struct{}, 100), end: make(chan struct{})}
	defer close(source.end)
	cfg, e := config(t, nil, nil), c.engines()
	cfg.Work = c.fleet(func(f *fleet.Config) { f.Engines, f.Batch, f.Sources = e, 2, source })
	cfg.ProbePause, cfg.TolerateQueueErrors = 300*time.Millisecond, true
	cfg.Limits = guard.Limits{Prepare: time.Second, Stop: 500 * time.Millisecond}
	q := c.open("bad", queue.Config{MaxAttempts: 1})
	publish(t, q, itemsFor(t, p, 6)...)
	c.submit("bad", func(r *record.Campaign) { r.Prior = p })
	w, r := begin(t, cfg)
	waitUntil(t, "the campaign is not suspended", func() bool { return w.Beat().SuspendedCampaign == "bad" })
	noLeases := func() bool {
		_, leased, err := q.Depth(t.Context())
		must(t, err)
		return leased == 0
	}
	waitUntil(t, "the worker holds leases of its last batch", noLeases)
	source.hangs.Store(true)
	<-source.begun
	waitUntil(t, "the worker holds leases", noLeases)
	r.waitFor(t, guard.ErrStuck)
}

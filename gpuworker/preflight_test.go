package gpuworker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/gpuworker"
	"ddiff/internal/gpuworker/fleet"
	"ddiff/internal/gpuworker/workertest"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/restore/prior"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// preflight publishes the preflight of a campaign.
func preflight(t *testing.T, q *queue.Queue, campaign string, sample ...item.Item) {
	t.Helper()
	data, err := json.Marshal(record.Preflight{Campaign: campaign, Items: sample})
	must(t, err)
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: record.ClassPreflight, ID: record.IDPreflight, Payload: data}}))
}

// checked waits for the answer to the preflight.
func checked(t *testing.T, q *queue.Queue) record.Checked {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for event, err := range q.Results(ctx, 0) {
		must(t, err)
		if event.ID == record.IDPreflight {
			var c record.Checked
			must(t, json.Unmarshal(event.Payload, &c))
			return c
		}
	}
	t.Fatal("no answer to the preflight")
	return record.Checked{}
}

// with returns a changed copy of an item.
func with(t *testing.T, it item.Item, change func(*item.Item)) item.Item {
	t.Helper()
	change(&it)
	must(t, it.Identify())
	return it
}

// sampleItems returns one item for each task, and an item of another size.
func sampleItems(t *testing.T, prior string) []item.Item {
	t.Helper()
	base := newItem(t, "sample", image(t, 0), nil)
	var out []item.Item
	for _, info := range operator.Builtin() {
		params, err := info.Parameters.Complete(nil)
		must(t, err)
		out = append(out, with(t, base, func(it *item.Item) { it.Prior, it.Task, it.Params = prior, info.Name, params }))
	}
	return append(out, with(t, base, func(it *item.Item) { it.Prior, it.Width, it.Height = prior, 2*side, side }))
}

var allChecks = []string{
	gpuworker.CheckPrior, gpuworker.CheckGradient, gpuworker.CheckShapes,
	gpuworker.CheckMemory, gpuworker.CheckSources, gpuworker.CheckStore,
}

// Each campaign fails one check, or none.
func TestPreflight(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	tiny := c.prior(workertest.Share(t, 0.1))
	hungry := c.prior(hungryPrior(t, 4))
	tall := c.prior(hungryAlong(t, 2, side, 1)) // its smallest size has memory
	damaged := tiny
	damaged.SHA256 = strings.Repeat("cd", 32)
	gone := newItem(t, "gone", image(t, 1), nil)
	must(t, os.Remove(gone.Image.Path))
	one := func(change func(*item.Item)) []item.Item {
		return []item.Item{with(t, newItem(t, "one", image(t, 2), nil), func(it *item.Item) {
			it.Prior = tiny.SHA256
			change(it)
		})}
	}
	cases := []struct {
		name   string
		prior  record.PriorFile
		sample []item.Item
		failed string
		reason string
	}{
		{"good", tiny, sampleItems(t, tiny.SHA256), "", ""},
		{"another-prior", tiny, one(func(it *item.Item) { it.Prior = strings.Repeat("ab", 32) }), gpuworker.CheckPrior, "abababababab"},
		{"damaged-prior", damaged, one(func(*item.Item) {}), gpuworker.CheckPrior, "submit the campaign again"},
		{"no-items", tiny, nil, gpuworker.CheckPrior, "no items"},
		{"odd-size", tiny, one(func(it *item.Item) { it.Width = 36 }), gpuworker.CheckShapes, "multiple of 8"},
		{"hungry", hungry, one(func(it *item.Item) { it.Prior = hungry.SHA256 }), gpuworker.CheckPrior, "out of memory"},
		{"tall", tall, one(func(it *item.Item) { it.Prior, it.Height = tall.SHA256, 4*side }), gpuworker.CheckMemory, "out of memory"},
		{"gone", tiny, []item.Item{with(t, gone, func(it *item.Item) { it.Prior = tiny.SHA256 })}, gpuworker.CheckSources, gone.Image.Path},
		{"one-gone", tiny, append([]item.Item{with(t, gone, func(it *item.Item) { it.Prior = tiny.SHA256 })}, one(func(*item.Item) {})...), "", ""},
		{"replacing-store", tiny, one(func(*item.Item) {}), gpuworker.CheckStore, "could be replaced"},
	}
	e := c.engines()
	queues := map[string]*queue.Queue{}
	for _, k := range cases {
		queues[k.name] = c.open(k.name, queue.Config{})
		preflight(t, queues[k.name], k.name, k.sample...)
		c.submit(k.name, func(r *record.Campaign) { r.Prior, r.Phase = k.prior, record.PhasePreflight })
	}
	cfg := config(t, nil, nil)
	cfg.Work = c.fleet(func(f *fleet.Config) { f.Engines, f.Store = e, &replacing{c.store} })
	w := start(t, cfg)
	for _, k := range cases {
		got := checked(t, queues[k.name])
		if got.Failed != k.failed || !strings.Contains(got.Reason, k.reason) || got.Worker != "tester" || strings.Contains(got.Reason, "\n") {
			t.Errorf("%s: %+v, want check %q to fail with %q", k.name, got, k.failed, k.reason)
			continue
		}
		for i, check := range got.Checks {
			if check.Name != allChecks[i] || check.Found == "" {
				t.Errorf("%s: check %d is %+v", k.name, i, check)
			}
		}
		if k.failed == "" && len(got.Checks) != len(allChecks) {
			t.Errorf("%s: %d checks passed, want %d", k.name, len(got.Checks), len(allChecks))
		} else if k.failed != "" && allChecks[len(got.Checks)] != k.failed {
			t.Errorf("%s: %s failed after %d checks", k.name, k.failed, len(got.Checks))
		}
		wantEmpty(t, queues[k.name])
	}
	w.stop(t)
	for _, err := range c.store.List(t.Context(), "out/good/") {
		t.Errorf("the preflight left an object behind (%v)", err)
	}
}

// TestPreflightAboveMemory: the estimated memory of the items, with the bundled prior, is above or below the worker's limit. An item
// below it is enough.
func TestPreflightAboveMemory(t *testing.T) {
	t.Parallel()
	p, err := prior.Open(prior.Bundled)
	must(t, err)
	sized := func(n int) item.Item {
		return with(t, newItem(t, fmt.Sprint(n), image(t, 0), nil), func(it *item.Item) { it.Prior, it.Width, it.Height = p.SHA256, n, n })
	}
	small, large := sized(side), sized(1024)
	const limit = 256 << 20 // bytes
	c := newCluster(t)
	e := c.engines()
	cases := []struct {
		name   string
		sample []item.Item
		failed string
	}{
		{"large", []item.Item{large}, gpuworker.CheckGradient},
		{"one-of-two", []item.Item{large, small}, ""},
	}
	queues := map[string]*queue.Queue{}
	for _, k := range cases {
		queues[k.name] = c.open(k.name, queue.Config{})
		preflight(t, queues[k.name], k.name, k.sample...)
		c.submit(k.name, func(r *record.Campaign) {
			r.Prior, r.Phase = record.PriorFile{SHA256: p.SHA256, Name: p.Card.Name, License: p.Card.License}, record.PhasePreflight
		})
	}
	cfg := config(t, nil, nil)
	cfg.SolveMemory = limit
	cfg.Work = c.fleet(func(f *fleet.Config) { f.Engines = e })
	w := start(t, cfg)
	for _, k := range cases {
		got := checked(t, queues[k.name])
		if got.Failed != k.failed {
			t.Errorf("%s: %+v, want check %q to fail", k.name, got, k.failed)
		}
		for _, text := range []string{"restore 1024×1024 pixels", "at most 256 MiB are allowed", "--memory-share"} {
			if k.failed != "" && !strings.Contains(got.Reason, text) {
				t.Errorf("%s: the reason %q lacks %q", k.name, got.Reason, text)
			}
		}
		wantEmpty(t, queues[k.name])
	}
	w.stop(t)
}

// replacing is a store in which the objects of one campaign may be created twice.
type replacing struct{ *recorder }

func (r *replacing) Create(ctx context.Context, key string, data []byte) error {
	if strings.HasPrefix(key, "out/replacing-store/") {
		return r.Put(ctx, key, data)
	}
	return r.recorder.Create(ctx, key, data)
}

// TestPreflightBesideBatch: the preflight of a campaign with the same prior is answered between two steps of an item that the worker solves, and
// the item gets the image that it gets alone.
func TestPreflightBesideBatch(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	tiny := c.prior(workertest.Share(t, 0.1))
	long := newItem(t, "long", image(t, 0), nil, func(s method.Settings) method.Settings {
		s.Steps = 1000
		return s
	})
	check := c.open("check", queue.Config{})
	cfg := config(t, nil, nil)
	store := &probed{recorder: c.store}
	cfg.Work = c.fleet(func(f *fleet.Config) { f.Engines, f.Store = c.engines(), store })
	var w atomic.Pointer[gpuworker.Worker]
	cfg.Steps = func(int) {
		if w.Load() == nil || store.steps.Add(1) > 1 {
			return
		}
		if s := w.Load().Beat().Solving; s == nil || s.Campaign != "beside" || s.Steps != 1000 || len(s.Items) != 1 || s.Items[0].ID != long.ID {
			t.Errorf("the heartbeat has %+v", s)
		}
		preflight(t, check, "check", with(t, long, func(it *item.Item) { it.Prior = tiny.SHA256 }))
		c.submit("check", func(r *record.Campaign) { r.Prior, r.Phase = tiny, record.PhasePreflight })
		for w.Load().Held() < 2 && t.Context().Err() == nil { // until the worker has leased the preflight
			time.Sleep(time.Millisecond)
		}
	}
	worker, run := begin(t, cfg)
	restored := func(campaign string) []byte {
		q := c.open(campaign, queue.Config{})
		publish(t, q, long)
		c.submit(campaign, func(r *record.Campaign) { r.Prior = tiny })
		if r := results(t, q, 1)["long"]; r.Outcome != item.OutcomeDone {
			t.Fatalf("%s: %s: %s", campaign, r.Outcome, r.Reason)
		}
		data, err := c.store.Get(t.Context(), "out/"+campaign+"/"+item.Key(long.ID, item.FileRestored))
		must(t, err)
		return data
	}
	alone := restored("alone")
	w.Store(worker)
	beside := restored("beside")
	if got := checked(t, check); got.Failed != "" {
		t.Errorf("%+v", got)
	}
	run.stop(t)
	if s := worker.Beat().Solving; s != nil {
		t.Errorf("after the last item the heartbeat has %+v", s)
	}
	if n := store.probed.Load(); n == 0 || n >= 1000 {
		t.Errorf("the preflight was answered after %d of 1000 steps", n)
	}
	if !bytes.Equal(alone, beside) {
		t.Error("the item differs from the item without a preflight")
	}
}

// probed is a store that records the number of steps before the first object of a preflight.
type probed struct {
	*recorder
	steps, probed atomic.Int64
}

func (p *probed) Create(ctx context.Context, key string, data []byte) error {
	if strings.HasPrefix(key, "out/check/") {
		p.probed.CompareAndSwap(0, p.steps.Load())
	}
	return p.recorder.Create(ctx, key, data)
}

// A preflight crashes all workers: the next worker publishes a failed check.
func TestPreflightThatCrashesWorkersFails(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	tiny := c.prior(workertest.Share(t, 0.1))
	q := c.open("deadly", queue.Config{AckWait: 100 * time.Millisecond, MaxAttempts: 2})
	preflight(t, q, "deadly", sampleItems(t, tiny.SHA256)...)
	for range 2 {
		leases, err := q.Lease(t.Context(), 1, patience)
		must(t, err)
		if len(leases) != 1 {
			t.Fatalf("%d leases", len(leases))
		}
	}
	c.submit("deadly", func(r *record.Campaign) { r.Prior, r.Phase = tiny, record.PhasePreflight })
	cfg := config(t, nil, nil)
	e := c.engines()
	cfg.Work = c.fleet(func(f *fleet.Config) { f.Engines = e })
	w := start(t, cfg)
	got := checked(t, q)
	w.stop(t)
	if got.Failed != record.CheckedByNone || !strings.Contains(got.Reason, "crashed or hung") {
		t.Errorf("the answer is %+v", got)
	}
}

package gpuworker_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"ddiff/gpuworker"
	"ddiff/internal/gpuworker/enginecache"
	"ddiff/internal/gpuworker/fleet"
	"ddiff/internal/gpuworker/workertest"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/passport"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// fixed returns the items with a fixed precision.
func fixed(t *testing.T, all []item.Item, p manifest.Precision) []item.Item {
	t.Helper()
	out := slices.Clone(all)
	for i := range out {
		out[i] = with(t, out[i], func(it *item.Item) { it.Precision = p })
	}
	return out
}

// able configures a worker with a name that leases items of some precisions. Its own default is byDefault.
func (c *cluster) able(name string, byDefault onnxruntime.Precision, precisions ...manifest.Precision) gpuworker.Config {
	cfg := config(c.t, nil, nil)
	e := c.engines(func(e *enginecache.Config) { e.Engine.Build.Precision = byDefault })
	cfg.Work = c.fleet(func(f *fleet.Config) { f.Engines, f.Batch, f.Precisions = e, 2, precisions })
	cfg.Name, cfg.TolerateQueueErrors = name, true
	return cfg
}

// Workers with different abilities share the items of a campaign in float32. A worker leases no item of a campaign in a
// precision that it lacks, and says so once, in its log and its heartbeat; an able worker restores them. Results and
// passports record the precision, and a campaign without one gets the worker's default.
func TestPrecisionsOfCampaigns(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.prior(workertest.Share(t, 0.1))
	const n = 3
	queues, all := map[string]*queue.Queue{}, map[string][]item.Item{}
	for name, precision := range map[string]manifest.Precision{"any": "", "full": "float32", "half": "float16", "brain": "bfloat16"} {
		queues[name], all[name] = c.open(name, queue.Config{}), fixed(t, itemsFor(t, p, n), precision)
		publish(t, queues[name], all[name]...)
		c.submit(name, func(r *record.Campaign) { r.Prior, r.Spec.Precision = p, precision })
	}
	pending := func(name string) int {
		t.Helper()
		pending, inFlight, err := queues[name].Depth(t.Context())
		must(t, err)
		return int(pending + inFlight)
	}

	cfg := c.able("plain", "", manifest.PrecisionFloat32)
	leased := &countedLeases{Fleet: cfg.Work.(*fleet.Fleet), leased: map[string]int{}}
	cfg.Work = leased
	plain := start(t, cfg)
	for _, name := range []string{"any", "full"} {
		for _, r := range results(t, queues[name], n) {
			if r.Outcome != item.OutcomeDone || r.Runtime.Precision != "float32" || r.Worker != "plain" {
				t.Errorf("item %s of campaign %s: %s by %s in %q: %s", r.Item.Name, name, r.Outcome, r.Worker, r.Runtime.Precision, r.Reason)
			}
		}
	}
	refused := leased.Refused()
	if !slices.Equal(slices.Sorted(maps.Keys(refused)), []string{"brain", "half"}) ||
		!strings.HasSuffix(refused["half"], "it has the precision float16, this worker computes in float32") ||
		!strings.Contains(refused["brain"], "bfloat16") {
		t.Errorf("the worker in float32 refuses %v", refused)
	}
	plain.stop(t)
	if pending("half") != n || pending("brain") != n || leased.leased["half"]+leased.leased["brain"] != 0 {
		t.Errorf("the worker in float32 has leased items: %v", leased.leased)
	}
	for _, id := range []string{"half", "brain"} {
		if n := strings.Count(c.log.String(), "leases no items of a campaign\" campaign="+id+" "); n != 1 {
			t.Errorf("campaign %s is logged %d times, want once:\n%s", id, n, c.log)
		}
	}

	able := start(t, c.able("able", "", manifest.PrecisionFloat32, manifest.PrecisionFloat16))
	for _, r := range results(t, queues["half"], n) {
		if r.Outcome != item.OutcomeDone || r.Runtime.Precision != "float16" || r.Worker != "able" {
			t.Errorf("item %s of campaign half: %s by %s in %q: %s", r.Item.Name, r.Outcome, r.Worker, r.Runtime.Precision, r.Reason)
		}
	}
	able.stop(t)
	if pending("brain") != n {
		t.Errorf("%d items in bfloat16 remain, want %d", pending("brain"), n)
	}
	it := all["half"][0]
	passport, err := passport.Read(get(t, prefixed(t, c.store, "out/half"), it.ID, item.FileRestored))
	if err != nil || passport.Runtime.Precision != "float16" || passport.Item.Precision != manifest.PrecisionFloat16 {
		t.Errorf("passport of %q, item of %q, %v", passport.Runtime.Precision, passport.Item.Precision, err)
	}
}

// A campaign's precision replaces the worker's own default, which campaigns without a precision get.
func TestPrecisionOverWorkersDefault(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.prior(workertest.Share(t, 0.1))
	queues := map[manifest.Precision]*queue.Queue{}
	for _, precision := range []manifest.Precision{"", "float32", "float16"} {
		id := "in-" + string(precision)
		queues[precision] = c.open(id, queue.Config{})
		publish(t, queues[precision], fixed(t, itemsFor(t, p, 2), precision)...)
		c.submit(id, func(r *record.Campaign) { r.Prior, r.Spec.Precision = p, precision })
	}
	w := start(t, c.able("half", onnxruntime.FP16, manifest.PrecisionFloat32, manifest.PrecisionFloat16))
	for precision, want := range map[manifest.Precision]manifest.Precision{"": "float16", "float32": "float32", "float16": "float16"} {
		for _, r := range results(t, queues[precision], 2) {
			if r.Outcome != item.OutcomeDone || r.Runtime.Precision != want || r.Item.Precision != precision {
				t.Errorf("item of %q: %s in %q, want %q", precision, r.Outcome, r.Runtime.Precision, want)
			}
		}
	}
	w.stop(t)
}

// A checkpoint is resumed in the precision of its steps only: a result has one precision.
func TestCheckpointOfOtherPrecision(t *testing.T) {
	t.Parallel()
	all := items(t, 1)
	for name, c := range map[string]struct {
		precision onnxruntime.Precision
		want      int
	}{"same": {onnxruntime.FP32, steps - 2}, "other": {onnxruntime.FP16, steps}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q, s := newQueue(t, queue.Config{}), newStore(t)
			publish(t, q, all...)
			cfg, p := config(t, q, s), newPace()
			cfg.Steps = p.steps
			w := start(t, cfg)
			<-p.made
			p.next <- struct{}{}
			<-p.made
			w.drain()
			close(p.next)
			w.wait(t)

			made := 0
			cfg = config(t, q, s)
			cfg.Steps = func(n int) { made += n }
			single(&cfg, func(d *gpuworker.Single) { d.Items.Engine = engineIn(t, c.precision) })
			w = start(t, cfg)
			results(t, q, 1)
			w.stop(t)
			if r := wantStored(t, s, all[0].ID); made != c.want || r.Runtime.Precision != c.precision {
				t.Errorf("%d steps in %s, want %d in %s", made, r.Runtime.Precision, c.want, c.precision)
			}
		})
	}
}

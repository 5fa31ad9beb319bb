package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/gpuworker"
	"ddiff/internal/gpuworker/enginecache"
	"ddiff/internal/gpuworker/tuner"
	"ddiff/internal/gpuworker/workertest"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore"
	"ddiff/restore/operator"
)

var must = workertest.Must

// clock is a clock that a test sets.
type clock struct{ now time.Time }

func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }

// fleetOf returns a fleet that does not watch its board, and its clock and log.
func fleetOf(t *testing.T, change ...func(*Config)) (*Fleet, *clock, *strings.Builder) {
	t.Helper()
	now, log := &clock{time.Unix(1e9, 0)}, &strings.Builder{}
	cfg := Config{
		Board: &queue.Board{}, Store: workertest.Store(t), Sources: manifest.Files{}, Logger: slog.New(slog.NewTextHandler(log, nil)),
		Attach: func(context.Context, string) (*queue.Queue, error) { return nil, queue.ErrNotReady },
		Now:    func() time.Time { return now.now },
	}
	for _, f := range change {
		f(&cfg)
	}
	f, err := New(cfg)
	must(t, err)
	return f, now, log
}

func recordOf(id string) record.Campaign {
	return record.Campaign{
		Schema: record.Schema, ID: id, Output: "out/" + id, Priority: record.PriorityNormal, Weight: 1,
		Wanted: record.WantRun, Phase: record.PhaseRunning, Prior: record.PriorFile{SHA256: strings.Repeat("0", 64)},
	}
}

// add puts a campaign into a fleet.
func (f *Fleet) add(t *testing.T, id string, change ...func(*record.Campaign)) *campaign {
	t.Helper()
	r := recordOf(id)
	for _, c := range change {
		c(&r)
	}
	data, err := json.Marshal(r)
	must(t, err)
	f.update(queue.Change{Key: record.KeyCampaignPrefix + id, Data: data})
	return f.campaigns[record.KeyCampaignPrefix+id]
}

func names(all []*campaign) string {
	var out []string
	for _, c := range all {
		out = append(out, c.record.ID)
	}
	return strings.Join(out, " ")
}

// The fields of a configuration are required, except for those with a default.
func TestFleetConfigNamesField(t *testing.T) {
	t.Parallel()
	f, _, _ := fleetOf(t)
	for want, change := range map[string]func(*Config){
		"Board is missing":              func(c *Config) { c.Board = nil },
		"Attach is missing":             func(c *Config) { c.Attach = nil },
		"Store is missing":              func(c *Config) { c.Store = nil },
		"Sources is missing":            func(c *Config) { c.Sources = nil },
		"Batch: -1 is outside 0..1024":  func(c *Config) { c.Batch = -1 },
		"Batch: 1025 is outside 0..102": func(c *Config) { c.Batch = 1025 },
	} {
		cfg := f.cfg
		change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
		if made, err := New(cfg); err == nil || made != nil {
			t.Errorf("%s: a fleet was made", want)
		}
	}
	for _, n := range []int{0, 1, tuner.MaxBatch} {
		cfg := f.cfg
		if cfg.Batch, cfg.Now, cfg.Logger = n, nil, nil; cfg.Validate() != nil {
			t.Errorf("a batch of %d: %v", n, cfg.Validate())
		}
		if made, err := New(cfg); err != nil || made.cfg.Now == nil || made.cfg.Logger == nil {
			t.Errorf("defaults: %v", err)
		}
	}
}

// The pause between two checks of an empty campaign is the time since it was found empty within a quarter,
// from 10 ms to 2 s.
func TestEmptyCampaignIsCheckedSeldom(t *testing.T) {
	t.Parallel()
	f, now, _ := fleetOf(t)
	c := f.add(t, "a")
	for _, step := range []struct{ pass, pause time.Duration }{
		{0, firstCheck},
		{5 * time.Millisecond, firstCheck},
		{15 * time.Millisecond, 20 * time.Millisecond},
		{980 * time.Millisecond, time.Second},
		{time.Hour, lastCheck},
	} {
		now.pass(step.pass)
		least, most := time.Hour, time.Duration(0)
		for range 200 {
			f.recordEmpty(c, f.snapshotOf(c))
			pause := c.empty.check.Sub(now.now)
			least, most = min(least, pause), max(most, pause)
		}
		low, high := float64(least)/float64(step.pause), float64(most)/float64(step.pause)
		if !(low >= 0.75) || !(low < 0.8) || !(high <= 1.25) || !(high > 1.2) {
			t.Errorf("a pause of %v: %v to %v", step.pause, least, most)
		}
	}
	if since := now.now.Sub(c.empty.since); since != time.Hour+time.Second {
		t.Errorf("empty since %v", since)
	}
}

// A campaign that was woken during a lease request is not empty after it.
func TestWakeDuringRequest(t *testing.T) {
	t.Parallel()
	f, _, _ := fleetOf(t)
	c := f.add(t, "a")
	before := f.snapshotOf(c)
	c.empty.wake()
	f.recordEmpty(c, before)
	if !c.empty.since.IsZero() || !c.empty.check.IsZero() || c.empty.wakes != before.wakes+1 {
		t.Errorf("%+v", c.empty)
	}
	f.recordEmpty(c, f.snapshotOf(c))
	if c.empty.since.IsZero() {
		t.Error("the campaign may have work")
	}
	c.empty.wake()
	if !c.empty.since.IsZero() || !c.empty.check.IsZero() {
		t.Errorf("%+v after a wake", c.empty)
	}
}

// The rates are those of the cluster divided by the workers.
func TestRatesFollowWorkers(t *testing.T) {
	t.Parallel()
	f, _, _ := fleetOf(t)
	for _, tt := range []struct {
		workers int
		rate    float64
		wait    time.Duration
	}{{1, 50, 100 * time.Millisecond}, {40, 50, 100 * time.Millisecond}, {1000, 2, 200 * time.Millisecond}, {100_000, 0.02, time.Second}} {
		f.workers = tt.workers
		if rate, wait := f.checkRate(), f.waitSlice(); rate != tt.rate || wait != tt.wait {
			t.Errorf("%d workers: %g checks per second and a wait of %v", tt.workers, rate, wait)
		}
	}
}

// due returns the empty campaigns at or after their check, the earliest first, as many as the rate permits.
func TestDueCampaigns(t *testing.T) {
	t.Parallel()
	f, now, _ := fleetOf(t)
	var all []*campaign
	for i, at := range []time.Duration{3, 1, 0, -2, 2} {
		c := f.add(t, string(rune('a'+i)))
		c.empty.since, c.empty.check = now.now.Add(-time.Hour), now.now.Add(at)
		all = append(all, c)
	}
	all[2].empty.since = time.Time{} // may have work
	now.pass(2)
	if got := names(f.due(all)); got != "d b e" {
		t.Errorf("due: %s", got)
	}
	if got := names(f.due(all)); got != "" {
		t.Errorf("due again: %s", got)
	}
	if !all[3].empty.check.Equal(now.now.Add(lastCheck)) {
		t.Errorf("the next check is after %v", all[3].empty.check.Sub(now.now))
	}
	if got := names(f.working(all)); got != "c" {
		t.Errorf("working: %s", got)
	}
	now.pass(time.Hour)
	all[0].retryAt = now.now.Add(1)
	if got := names(f.due(all)); strings.Contains(got, "a") {
		t.Errorf("due: %s", got)
	}
	// The burst of checks.
	f, now, _ = fleetOf(t)
	all = nil
	for i := range 2 * checkBurst {
		c := f.add(t, fmt.Sprintf("%02d", i))
		c.empty.since, c.empty.check = now.now, now.now
		all = append(all, c)
	}
	if n, m := len(f.due(all)), len(f.due(all)); n != checkBurst || m != 0 {
		t.Errorf("%d and %d campaigns are due at once", n, m)
	}
	now.pass(100 * time.Millisecond)
	if n := len(f.due(all)); n != workerChecks/10 {
		t.Errorf("%d campaigns are due after 0.1 s", n)
	}
}

// nextWait returns the usable campaign with the earliest check, and then another one.
func TestNextWait(t *testing.T) {
	t.Parallel()
	f, now, _ := fleetOf(t)
	var all []*campaign
	for i, at := range []time.Duration{3, 1, 2} {
		c := f.add(t, string(rune('a'+i)))
		c.empty.since, c.empty.check = now.now, now.now.Add(at)
		all = append(all, c)
	}
	got := ""
	for range 4 {
		got += f.nextWait(all).record.ID
		now.pass(1)
	}
	if got != "bcab" {
		t.Errorf("waits in %s", got)
	}
	for _, c := range all {
		c.refused = "no"
	}
	if c := f.nextWait(all); c != nil {
		t.Errorf("waits in the refused campaign %s", c.record.ID)
	}
}

// The runnable campaigns are sorted by time and name, and by priority into classes.
func TestOpenCampaigns(t *testing.T) {
	t.Parallel()
	f, now, _ := fleetOf(t)
	at := func(d time.Duration) func(*record.Campaign) {
		return func(r *record.Campaign) { r.Submitted = now.now.Add(d) }
	}
	f.add(t, "late", at(2))
	f.add(t, "b", at(1))
	f.add(t, "a", at(1))
	f.add(t, "high", at(3), func(r *record.Campaign) { r.Priority = record.PriorityHigh })
	f.add(t, "new", at(4), func(r *record.Campaign) { r.Priority, r.Phase = record.PriorityLow, record.PhasePreflight })
	f.add(t, "paused", func(r *record.Campaign) { r.Wanted = record.WantPause })
	open, changed := f.open()
	if got := names(open.all); got != "a b late high new" {
		t.Errorf("open: %s", got)
	}
	var classes []string
	for _, c := range open.classes {
		classes = append(classes, names(c))
	}
	if !slices.Equal(classes, []string{"high", "a b late", "new"}) || names(open.preflight) != "new" {
		t.Errorf("classes %q, preflight %s", classes, names(open.preflight))
	}
	if again, _ := f.open(); again != open {
		t.Error("the campaigns are sorted at every call")
	}
	f.removeIf(func(key string) bool { return key == record.KeyCampaignPrefix+"b" })
	select {
	case <-changed:
	default:
		t.Error("the removal is not announced")
	}
	if open, _ = f.open(); names(open.all) != "a late high new" {
		t.Errorf("open after a removal: %s", names(open.all))
	}
}

// A worker leases from campaigns that ask for no pool or for its own. Another pool's campaign is not refused: it has its workers.
func TestPools(t *testing.T) {
	t.Parallel()
	asks := func(pool string) func(*record.Campaign) {
		return func(r *record.Campaign) { r.Spec.Pool, r.Spec.Precision = pool, manifest.PrecisionFloat16 }
	}
	for pool, want := range map[string]string{"": "any default", manifest.DefaultPool: "any default", "gpu": "any gpu"} {
		f, _, log := fleetOf(t, func(c *Config) { c.Pool, c.Precisions = pool, []manifest.Precision{manifest.PrecisionFloat32} })
		for name, asked := range map[string]string{"any": "", "default": manifest.DefaultPool, "gpu": "gpu"} {
			f.add(t, name, asks(asked))
		}
		open, _ := f.open()
		if got := names(open.all); got != want {
			t.Errorf("pool %q: leases from %q, want %q", pool, got, want)
		}
		if refused := f.Refused(); len(refused) != 2 || strings.Count(log.String(), "leases no items of a campaign") != 2 {
			t.Errorf("pool %q: refuses %v, log %s", pool, refused, log)
		}
	}
}

// The rotation is charged per priority; a campaign that is leased first is first once.
func TestOrderOfClass(t *testing.T) {
	t.Parallel()
	f, _, _ := fleetOf(t)
	weight := func(n int) func(*record.Campaign) { return func(r *record.Campaign) { r.Weight = n } }
	a, b, c := f.add(t, "a", weight(1)), f.add(t, "b", weight(3)), f.add(t, "c", weight(2))
	all := []*campaign{a, b, c}
	if got := names(f.order(all)); got != "b c a" {
		t.Errorf("order %s", got)
	}
	if f.order(nil) != nil {
		t.Error("an order of nothing")
	}
	f.charge(b, 0, all)
	if len(f.rotation(record.PriorityNormal).credit) != 0 {
		t.Error("no items were charged")
	}
	f.charge(b, 2, all)
	if credit := f.rotation(record.PriorityNormal).credit; credit["a"] != 2 || credit["b"] != -6 || credit["c"] != 4 {
		t.Errorf("credit %v", credit)
	}
	f.LeaseFirst("b")
	if got := names(f.order(all)); got != "b c a" {
		t.Errorf("order %s with b first", got)
	}
	if got := names(f.order(all)); got != "c a b" {
		t.Errorf("order %s after b was first", got)
	}
	f.LeaseFirst("c") // is first already
	if got := names(f.order(all)); got != "c a b" || c.first {
		t.Errorf("order %s", got)
	}
	f.recordEmpty(b, f.snapshotOf(b))
	if _, ok := f.rotation(record.PriorityNormal).credit["b"]; ok {
		t.Error("a campaign without work keeps its debt")
	}
	f.removeIf(func(key string) bool { return strings.HasSuffix(key, "c") })
	if _, ok := f.rotation(record.PriorityNormal).credit["c"]; ok || c.lifetime.Err() == nil {
		t.Error("a removed campaign keeps its credit or its items")
	}
}

// A campaign is skipped until its pause is over, while it is refused, and after its end.
func TestUsableCampaigns(t *testing.T) {
	t.Parallel()
	f, now, log := fleetOf(t)
	c := f.add(t, "a")
	if !f.usable(c) {
		t.Error("the campaign is not usable")
	}
	reason := errors.New("no disk")
	for range 2 {
		f.Suspend("a", time.Second, reason)
	}
	if now.pass(time.Second - 1); f.usable(c) {
		t.Error("usable during the pause")
	}
	if now.pass(1); !f.usable(c) {
		t.Error("not usable after the pause")
	}
	if n := strings.Count(log.String(), "no disk"); n != 1 {
		t.Errorf("the reason is logged %d times", n)
	}
	f.Suspend("a", time.Hour, nil)
	f.add(t, "a", func(r *record.Campaign) { r.Prior.Name = "other" })
	if !f.usable(c) {
		t.Error("another prior does not end the pause")
	}
	f.Suspend("a", time.Hour, nil)
	f.add(t, "a", func(r *record.Campaign) { r.Prior.Name, r.Phase = "other", record.PhaseCanary })
	if !f.usable(c) {
		t.Error("another phase does not end the pause")
	}
	f.Suspend("a", time.Hour, nil)
	f.add(t, "a", func(r *record.Campaign) { r.Prior.Name, r.Phase, r.Weight = "other", record.PhaseCanary, 2 })
	if f.usable(c) {
		t.Error("another weight ends the pause")
	}
	f.Suspend("unknown", time.Hour, nil)
	f.LeaseOne("unknown", true)
	f.LeaseFirst("unknown")

	b := f.add(t, "b")
	f.add(t, "b", func(r *record.Campaign) { r.Wanted = record.WantPause })
	if f.usable(b) || b.lifetime.Err() != nil {
		t.Error("a paused campaign")
	}
	f.add(t, "b", func(r *record.Campaign) { r.Wanted = record.WantCancelNow })
	if f.usable(b) || b.lifetime.Err() == nil {
		t.Error("a cancelled campaign")
	}
	ended := b.lifetime
	f.add(t, "b", func(r *record.Campaign) { r.Wanted, r.Weight = record.WantCancelNow, 2 })
	if b.lifetime != ended {
		t.Error("a cancelled campaign got a new lifetime")
	}
	if f.add(t, "b"); !f.usable(b) || b.lifetime.Err() != nil {
		t.Error("a campaign that was submitted again")
	}
	for range 2 {
		f.refuse(b, errors.New("first"))
	}
	f.refuse(b, errors.New("second"))
	if got := f.Refused(); f.usable(b) || !reflect.DeepEqual(got, map[string]string{"b": "first"}) || strings.Count(log.String(), "first") != 1 {
		t.Errorf("refused %v", got)
	}
}

// At most 100 refused campaigns are named, also of newer versions.
func TestRefusedIsLimited(t *testing.T) {
	t.Parallel()
	f, _, log := fleetOf(t)
	for i := range maxRefused - 1 {
		f.refuse(f.add(t, fmt.Sprintf("r%d", i)), errors.New("no"))
	}
	newer := func(r *record.Campaign) { r.Schema++ }
	f.add(t, "n1", newer)
	f.add(t, "n2", newer)
	f.add(t, "n2", newer)
	if n := strings.Count(log.String(), "that a newer version of ddiff submitted"); n != 2 {
		t.Errorf("two newer records are logged %d times", n)
	}
	got := f.Refused()
	if len(got) != maxRefused || !strings.Contains(got["n1"], "newer than schema") || got["n2"] != "" {
		t.Errorf("%d refused campaigns, %q", len(got), got["n1"])
	}
	f.refuse(f.add(t, "one"), errors.New("no"))
	f.refuse(f.add(t, "two"), errors.New("no"))
	if got := f.Refused(); len(got) != maxRefused || got["n1"] != "" {
		t.Errorf("%d refused campaigns", len(got))
	}
	// A record that this version can read again.
	f.add(t, "n1")
	f.removeIf(func(key string) bool { return strings.Contains(key, "r") || strings.HasSuffix(key, "n2") })
	if len(f.newer) != 0 {
		t.Errorf("newer records: %v", f.newer)
	}
}

// A record that cannot be read, or moved to another folder, does not replace a campaign; a moved one changes the store.
func TestUpdateOfRecord(t *testing.T) {
	t.Parallel()
	f, _, log := fleetOf(t, func(c *Config) { c.Precisions = []manifest.Precision{"float32"} })
	c := f.add(t, "a")
	store := c.store
	if f.add(t, "a", func(r *record.Campaign) { r.Weight = 2 }); c.store != store || c.record.Weight != 2 {
		t.Error("a changed weight")
	}
	if f.add(t, "a", func(r *record.Campaign) { r.Output = "out/b" }); c.store == store || f.campaigns[record.KeyCampaignPrefix+"a"] != c {
		t.Error("a changed folder")
	}
	for name, change := range map[string]func(*record.Campaign){
		"id": func(r *record.Campaign) { r.ID = "b" }, "weight": func(r *record.Campaign) { r.Weight = 0 },
		"output": func(r *record.Campaign) { r.Output = "priors/x" }, "path": func(r *record.Campaign) { r.Output = "../x" },
	} {
		log.Reset()
		if f.add(t, "a", change); c.record.Output != "out/b" || c.record.Weight != 1 || log.Len() == 0 {
			t.Errorf("%s: a wrong record was used: %+v", name, c.record)
		}
		if bad := f.add(t, "x", change); bad != nil {
			t.Errorf("%s: a campaign of a wrong record", name)
		}
	}
	for _, forged := range []string{"", `{"type":"io.nats.jetstream.api.v1.account_info_response","memory":0}`} { // an answer of the server
		if f.update(queue.Change{Key: record.KeyCampaignPrefix + "a", Data: []byte(forged)}); c.record.Weight != 1 || c.lifetime.Err() != nil {
			t.Errorf("%q was used, or drops the leased items: %+v", forged, c.record)
		}
	}
	half := f.add(t, "half", func(r *record.Campaign) { r.Spec.Precision = "float16" })
	full := f.add(t, "full", func(r *record.Campaign) { r.Spec.Precision = "float32" })
	free := f.add(t, "any")
	if half.refused == "" || full.refused != "" || free.refused != "" {
		t.Errorf("refused: %q, %q, %q", half.refused, full.refused, free.refused)
	}
	f.cfg.Precisions, f.cfg.Whole = append(f.cfg.Precisions, "bfloat16"), []manifest.Precision{"float32"}
	for name, c := range map[string]struct {
		precision manifest.Precision
		methods   []string
		refused   string
	}{
		"bfloat16-ddiff": {"bfloat16", []string{"ddiff", "unknown"}, ""}, "float32-dps": {"float32", []string{"dps"}, ""}, "any-dps": {"", []string{"dps"}, ""},
		"bfloat16-dps":  {"bfloat16", []string{"ddiff", "dps"}, "its method dps needs the gradient of the network, which this worker cannot do in the campaign's precision bfloat16"},
		"bfloat16-dcdp": {"bfloat16", []string{"dcdp"}, "its method dcdp evaluates the network in a loop, which"},
	} {
		got := f.add(t, name, func(r *record.Campaign) { r.Spec.Precision, r.Spec.Methods = c.precision, c.methods })
		if (got.refused != "") != (c.refused != "") || !strings.Contains(got.refused, c.refused) || f.usable(got) != (c.refused == "") {
			t.Errorf("%s is refused: %q, want %q; usable: %v", name, got.refused, c.refused, f.usable(got))
		}
	}
	// A worker with OpenVINO alone ends if it leases an item that it cannot divide.
	f.cfg.Precisions, f.cfg.Whole, f.cfg.Default = []manifest.Precision{"float32"}, []manifest.Precision{}, "float32"
	for method, want := range map[string]string{"ddiff": "", "dps": "cannot do in its default precision float32"} {
		got := f.add(t, "default-"+method, func(r *record.Campaign) { r.Spec.Methods = []string{method} })
		if (got.refused != "") != (want != "") || !strings.Contains(got.refused, want) {
			t.Errorf("a campaign of %s without a precision is refused: %q, want %q", method, got.refused, want)
		}
	}
	f.cfg.Precisions = nil
	if err := f.lacks(&half.record); err != nil {
		t.Errorf("a worker of all precisions: %v", err)
	}
}

// The size of a lease is that of the worker, of the campaign, or of the tuner, or the default.
func TestLeaseSize(t *testing.T) {
	t.Parallel()
	sizes := tuner.New(slog.New(slog.DiscardHandler))
	for _, tt := range []struct {
		worker, campaign int
		tuner            *tuner.Tuner
		batch, lease     int
	}{{0, 0, nil, gpuworker.DefaultBatch, gpuworker.DefaultBatch}, {3, 7, sizes, 3, 3}, {0, 7, sizes, 7, 7}, {0, 0, sizes, 0, 1}, {1, 7, nil, 1, 1}, {0, 1, nil, 1, 1}} {
		f, _, _ := fleetOf(t, func(c *Config) { c.Batch, c.Tuner = tt.worker, tt.tuner })
		c := f.add(t, "a", func(r *record.Campaign) { r.Spec.Batch = tt.campaign })
		if s := f.snapshotOf(c); f.batch(s) != tt.batch || f.leaseSize(s) != tt.lease {
			t.Errorf("%+v: batch %d, lease of %d", tt, f.batch(s), f.leaseSize(s))
		}
		f.LeaseOne("a", true)
		if s := f.snapshotOf(c); f.leaseSize(s) != 1 {
			t.Errorf("%+v: lease of %d for items that run alone", tt, f.leaseSize(s))
		}
		f.LeaseOne("a", false)
		if s := f.snapshotOf(c); f.leaseSize(s) != tt.lease {
			t.Errorf("%+v: lease of %d afterwards", tt, f.leaseSize(s))
		}
	}
}

// opener is a cache with prescribed errors, which counts what it opens.
type opener struct {
	err, operatorErr error
	priors           int
	operators        int
}

func (o *opener) Acquire(context.Context, record.PriorFile) (*restore.Engine, func(), error) {
	o.priors++
	return nil, func() {}, o.err
}

func (o *opener) Operators(_ context.Context, from []record.OperatorFile) (map[string]*operator.File, error) {
	o.operators += len(from)
	return nil, o.operatorErr
}

// The assignment has the prior and the operators of its campaign, and in a preflight the error of an unusable file.
func TestAssignment(t *testing.T) {
	t.Parallel()
	lost := errors.New("no route")
	for name, tt := range map[string]struct {
		cache    opener
		phase    record.Phase
		unusable error // of the assignment
		err      error
		priors   int
	}{
		"all usable":                     {opener{}, record.PhaseRunning, nil, nil, 1},
		"store":                          {opener{err: lost}, record.PhasePreflight, nil, lost, 1},
		"unusable prior":                 {opener{err: enginecache.ErrPriorFile}, record.PhaseRunning, nil, enginecache.ErrPriorFile, 1},
		"unusable prior in preflight":    {opener{err: enginecache.ErrPriorFile}, record.PhasePreflight, enginecache.ErrPriorFile, nil, 1},
		"unusable operator":              {opener{operatorErr: enginecache.ErrOperatorFile}, record.PhaseRunning, nil, enginecache.ErrOperatorFile, 0},
		"unusable operator in preflight": {opener{operatorErr: enginecache.ErrOperatorFile}, record.PhasePreflight, enginecache.ErrOperatorFile, nil, 0},
	} {
		f, _, _ := fleetOf(t, func(c *Config) { c.Engines = &tt.cache })
		c := f.add(t, "a", func(r *record.Campaign) {
			r.Phase, r.Owner, r.Operators = tt.phase, "ann", make([]record.OperatorFile, 2)
		})
		a, err := f.assign(t.Context(), f.snapshotOf(c))
		if !errors.Is(err, tt.err) || !errors.Is(a.EngineError, tt.unusable) || a.Batch != gpuworker.DefaultBatch || a.Campaign != "a" || a.Owner != "ann" {
			t.Errorf("%s: assignment %+v, %v", name, a, err)
		}
		if tt.cache.priors != tt.priors || tt.cache.operators != 2 {
			t.Errorf("%s: %d priors and %d operators were opened", name, tt.cache.priors, tt.cache.operators)
		}
	}
	f, _, _ := fleetOf(t)
	c := f.add(t, "a", func(r *record.Campaign) { r.Operators = make([]record.OperatorFile, 2) })
	if a, err := f.assign(t.Context(), f.snapshotOf(c)); err != nil || a.Engine != nil {
		t.Errorf("without engines: %v", err)
	}
}

// A queue that is not ready pauses its campaign shortly, another error longer; a closed queue ends the worker.
func TestErrorsOfLease(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err, want error
		pause     time.Duration
	}{
		"not ready": {queue.ErrNotReady, nil, notReadyPause}, "unavailable": {queue.ErrUnavailable, nil, notReadyPause},
		"other": {errors.New("other"), nil, errorPause}, "closed": {queue.ErrClosed, queue.ErrClosed, 0},
	} {
		f, now, log := fleetOf(t, func(c *Config) {
			c.Attach = func(context.Context, string) (*queue.Queue, error) { return nil, tt.err }
		})
		c := f.add(t, "a")
		c.retryAt = now.now
		_, leases, err := f.lease(t.Context(), c, 0)
		if !errors.Is(err, tt.want) || len(leases) > 0 || c.retryAt.Sub(now.now) != tt.pause || (log.Len() > 0) != (name == "other") {
			t.Errorf("%s: %v, pause %v, log %s", name, err, c.retryAt.Sub(now.now), log)
		}
	}
	f, _, _ := fleetOf(t)
	c := f.add(t, "a", func(r *record.Campaign) { r.Wanted = record.WantPause })
	if _, _, err := f.lease(t.Context(), c, 0); err != nil || !c.retryAt.IsZero() {
		t.Errorf("a paused campaign: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := f.lease(ctx, f.add(t, "b"), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("a draining worker: %v", err)
	}
}

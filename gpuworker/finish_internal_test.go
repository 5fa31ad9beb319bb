package gpuworker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ddiff/internal/gpuworker/enginecache"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/regular"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/metric"
	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/solver"
	"ddiff/restore/item"
	"ddiff/storage"
)

// blobs are sources by path.
type blobs map[string][]byte

func (b blobs) Get(_ context.Context, path string) ([]byte, error) { return b[path], nil }

// solved returns a solved task of a black image, whose first value is brighter.
func solved(t *testing.T, brighter float32) *task {
	t.Helper()
	e := engineOf(t)
	data, err := raster.EncodePNG(raster.New(3, 16, 16))
	must(t, err)
	in := newAssigned(Assignment{Engine: e, Sources: blobs{"x": data}}, 1, nil, 0)
	tk := planned(t, in, sampleItem(t, e, 16, 16, func(it *item.Item) { it.Image = &item.Source{Path: "x", SHA256: regular.SHA256(data)} }))
	must(t, in.loader.Fetch(t.Context(), &tk.Job))
	must(t, in.loader.Measure(t.Context(), &tk.Job))
	x := make([]float32, tk.Op.Image.Size())
	x[0] = brighter
	tk.Solution = solver.Solution{X: x, Curves: solver.Curves{Time: []int{int(10 * brighter)}}} // another trace, too
	must(t, tk.Answer(t.Context(), e))
	tk.Item.ID, tk.lease = "item", &queue.Lease{}
	return tk
}

// faulty is a store that fails for some keys.
type faulty struct {
	*storage.Dir
	put, get func(key string) error
}

func (f faulty) Put(ctx context.Context, key string, data []byte) error {
	if f.put != nil {
		if err := f.put(key); err != nil {
			return err
		}
	}
	return f.Dir.Put(ctx, key, data)
}

func (f faulty) Create(ctx context.Context, key string, data []byte) error {
	if f.put != nil {
		if err := f.put(key); err != nil {
			return err
		}
	}
	return f.Dir.Create(ctx, key, data)
}

func (f faulty) Get(ctx context.Context, key string) ([]byte, error) {
	if f.get != nil {
		if err := f.get(key); err != nil {
			return nil, err
		}
	}
	return f.Dir.Get(ctx, key)
}

// The first result is kept with its files, also by a worker that looked for it too early.
func TestFirstResultIsKept(t *testing.T) {
	t.Parallel()
	_, dir := workerOf(t)
	write := func(name string, brighter float32, late int) (*item.Result, *task) {
		t.Helper()
		w, _ := workerOf(t, func(c *Config) { c.Name = name })
		tk := solved(t, brighter)
		tk.Batch, tk.Seconds, tk.Plan.Solver.Steps = 3, 1.5, 7
		looks := 0
		tk.assigned.Store = faulty{Dir: dir, get: func(key string) error {
			if path.Base(key) != item.FileResult {
				return nil
			}
			looks++
			return when(looks <= late, storage.ErrNotFound)
		}}
		res, err := engineRestorer{w.core}.write(t.Context(), tk)
		must(t, err)
		return res, tk
	}
	first, tk := write("first", 0, 0)
	if first.Worker != "first" || first.Batch != 3 || first.Seconds != 1.5 || first.Steps != 7 || len(first.Artifacts) != 5 || len(first.MetricIDs) != len(metric.Builtin()) {
		t.Errorf("the result is %+v", first)
	}
	wantFiles(t, dir, first)
	if picture, err := dir.Get(t.Context(), item.Key("item", item.FileRestored)); err != nil || tk.written < len(picture) {
		t.Errorf("the largest file has %d bytes, %v", tk.written, err)
	}
	for late := range 2 {
		if second, _ := write("second", 0.5, late); second.Worker != "first" || !maps.Equal(second.Artifacts, first.Artifacts) {
			t.Errorf("the result of %s was kept after %d late looks", second.Worker, late)
		}
		wantFiles(t, dir, first)
	}
}

// wantFiles checks the files of an item against its result.
func wantFiles(t *testing.T, s store, res *item.Result) {
	t.Helper()
	for file, want := range res.Artifacts {
		if data, err := s.Get(t.Context(), item.Key("item", file)); err != nil || regular.SHA256(data) != want {
			t.Errorf("%s is not that of the result: %v", file, err)
		}
	}
}

// request is a request to a store that waits for its turn.
type request struct {
	attempt int
	name    string
	turn    chan error
}

// turns is a store that executes each request when the test says so, or never. After the end of dead the worker gets errors.
type turns struct {
	*storage.Dir
	attempt int
	wait    func(r request)
	dead    context.Context
}

func (s turns) do(name string, call func() error) error {
	if s.dead.Err() != nil {
		return s.dead.Err()
	}
	r := request{s.attempt, name, make(chan error)}
	s.wait(r)
	if err := <-r.turn; err != nil {
		return err
	}
	err := call()
	return errors.Join(err, s.dead.Err()) // a dead worker gets no answer
}

func (s turns) Get(ctx context.Context, key string) (data []byte, err error) {
	err = s.do("get "+key, func() error { data, err = s.Dir.Get(ctx, key); return err })
	return data, err
}

func (s turns) Put(ctx context.Context, key string, data []byte) error {
	return s.do("put "+key, func() error { return s.Dir.Put(ctx, key, data) })
}

func (s turns) Create(ctx context.Context, key string, data []byte) error {
	return s.do("create "+key, func() error { return s.Dir.Create(ctx, key, data) })
}

func (s turns) Delete(ctx context.Context, key string) error {
	return s.do("delete "+key, func() error { return s.Dir.Delete(ctx, key) })
}

// TestAttackLateRequests: three attempts at an item write its files in any order of their requests, and some die, whose last requests are executed
// at any time, or never. From the moment in which one of them, or a fourth, has a result, all files are those of this result, and stay.
func TestAttackLateRequests(t *testing.T) {
	t.Parallel()
	const attempts = 4
	var tasks [attempts]*task
	var workers [attempts]*Worker
	for i := range attempts {
		tasks[i] = solved(t, []float32{0, 0.5, 0, 0.7}[i]) // two attempts have files with equal bytes
		workers[i], _ = workerOf(t, func(c *Config) { c.Name = fmt.Sprint("worker", i) })
	}
	replaced := 0
	for seed := range uint64(60) {
		dir := emptyStore(t)
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var waiting []request
			var first *item.Result
			random := rand.New(rand.NewPCG(seed, 0))
			var kill [attempts]func()
			begin := func(i int) {
				dead, end := context.WithCancel(t.Context())
				kill[i] = end
				tasks[i].assigned.Store = turns{dir, i, func(r request) {
					mu.Lock()
					defer mu.Unlock()
					waiting = append(waiting, r)
				}, dead}
				go func() {
					res, err := engineRestorer{workers[i].core}.write(t.Context(), tasks[i])
					mu.Lock()
					defer mu.Unlock()
					if err == nil && dead.Err() == nil && first == nil {
						first = res
					} else if err == nil && dead.Err() == nil && !maps.Equal(res.Artifacts, first.Artifacts) {
						t.Errorf("seed %d: a second result of %s after that of %s", seed, res.Worker, first.Worker)
					}
				}()
			}
			serve := func(chosen func(r request) bool) bool {
				synctest.Wait()
				slices.SortFunc(waiting, func(a, b request) int { return cmp.Or(a.attempt-b.attempt, strings.Compare(a.name, b.name)) })
				var may []int
				for i, r := range waiting {
					if chosen(r) {
						may = append(may, i)
					}
				}
				if len(may) == 0 {
					return false
				}
				at := may[random.IntN(len(may))]
				r := waiting[at]
				waiting = slices.Delete(waiting, at, at+1)
				r.turn <- nil
				synctest.Wait()
				if first != nil {
					wantFiles(t, dir, first)
				}
				return true
			}
			all := func(request) bool { return true }
			for begun := 0; begun < attempts-1 || random.IntN(20) > 0; {
				switch n := random.IntN(20); {
				case n < 3 && begun < attempts-1:
					begin(begun)
					begun++
				case n == 3 && begun > 0:
					kill[random.IntN(begun)]()
				default:
					serve(all)
				}
			}
			begin(attempts - 1) // this one is neither stopped nor killed
			for serve(func(r request) bool { return r.attempt == attempts-1 }) {
			}
			if first == nil {
				t.Errorf("seed %d: no attempt has a result", seed)
			} else if len(first.Replaces) > 0 {
				replaced++
			}
			for serve(all) { // what was on its way arrives
			}
		})
	}
	if replaced == 0 {
		t.Error("no result has replaced files of another attempt")
	}
}

// A result that cannot be read is an error; one that the store denies after a conflict is a failure of the store.
func TestReadOfResult(t *testing.T) {
	t.Parallel()
	_, dir := workerOf(t)
	tk := solved(t, 0)
	tk.assigned.Store = dir
	if res, err := tk.findResult(t.Context()); res != nil || err != nil {
		t.Errorf("no result: %v, %v", res, err)
	}
	if _, err := tk.readExisting(t.Context()); !errors.Is(err, storage.ErrUnavailable) || !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("a denied result: %v", err)
	}
	must(t, tk.createResult(t.Context(), &item.Result{Worker: "w"}))
	if err := tk.createResult(t.Context(), &item.Result{}); !errors.Is(err, storage.ErrExists) {
		t.Errorf("a second result: %v", err)
	}
	if res, err := tk.findResult(t.Context()); err != nil || res.Worker != "w" {
		t.Errorf("%v, %v", res, err)
	}
	must(t, dir.Put(t.Context(), item.Key("item", item.FileResult), []byte("{")))
	for name, read := range map[string]func(context.Context) (*item.Result, error){"find": tk.findResult, "existing": tk.readExisting} {
		if res, err := read(t.Context()); res != nil || err == nil || !strings.Contains(err.Error(), "move the item's folder away and run again") {
			t.Errorf("%s: %v, %v", name, res, err)
		}
	}
	full := storage.ErrNoSpace
	tk.assigned.Store = faulty{Dir: dir, put: func(string) error { return full }, get: func(string) error { return storage.ErrNotFound }}
	w, _ := workerOf(t)
	if res, err := (engineRestorer{w.core}).write(t.Context(), tk); res != nil || !errors.Is(err, full) || tk.written == 0 {
		t.Errorf("a full store: %v, %v", res, err)
	}
	tk.assigned.Store = faulty{Dir: dir, get: func(string) error { return full }}
	if res, err := (engineRestorer{w.core}).write(t.Context(), tk); res != nil || !errors.Is(err, full) {
		t.Errorf("an unreadable store: %v, %v", res, err)
	}
	// A worker that was stopped for long looks whether the campaign was deleted, and then writes nothing; else it looks once.
	empty, err := storage.NewDir(t.TempDir())
	must(t, err)
	tk.assigned.Store = empty
	looks := 0
	tk.assigned.Deleted = func(context.Context) (bool, error) { looks++; return true, nil }
	tk.assigned.looked.Store(time.Now().Add(-time.Minute).UnixNano())
	res, err := (engineRestorer{w.core}).write(t.Context(), tk)
	if o := outcomeOf(t.Context(), tk, err); res != nil || o.kind != dropped {
		t.Errorf("of a deleted campaign: %v, %v, outcome %v", res, err, o.kind)
	}
	for info, err := range empty.List(t.Context(), "") {
		t.Errorf("a file of a deleted campaign: %s, %v", info.Key, err)
	}
	tk.assigned.Deleted = func(context.Context) (bool, error) { looks++; return false, nil }
	for range 2 {
		must(t, tk.assigned.checkDeleted(t.Context()))
	}
	if looks != 2 {
		t.Errorf("%d looks, want 2", looks)
	}
}

// The files of an item are written together, as a distant store takes long for each; the restored image comes when all have been written.
func TestFilesAreWrittenTogether(t *testing.T) {
	t.Parallel()
	w, dir := workerOf(t)
	tk := solved(t, 0)
	var others atomic.Int32
	all := make(chan struct{})
	const files = 4
	tk.assigned.Store = faulty{Dir: dir, put: func(key string) error {
		if strings.HasSuffix(key, item.FileRestored) || strings.HasSuffix(key, item.FileResult) {
			if n := others.Load(); n != files {
				return fmt.Errorf("%s after %d files", key, n)
			}
			return nil
		}
		if others.Add(1) == files {
			close(all)
		}
		select {
		case <-all:
			return nil
		case <-time.After(time.Minute):
			return fmt.Errorf("%s waits for other files", key)
		}
	}}
	res, err := engineRestorer{w.core}.write(t.Context(), tk)
	if err != nil || len(res.Artifacts) != files+1 {
		t.Fatalf("%v, %v", res, err)
	}
}

// A probe creates an object as large as the last file, from 1 KiB to 16 MiB, and deletes it. The store must refuse to create it twice,
// and return what was written.
func TestProbeOfStore(t *testing.T) {
	t.Parallel()
	dir := emptyStore(t)
	for _, tt := range []struct{ written, least, most int }{
		{0, 1 << 10, 1<<10 + 64}, {5000, 5000, 5064}, {1 << 30, 16 << 20, 16<<20 + 64},
	} {
		size := 0
		if err := testStore(t.Context(), sized{dir, &size}, tt.written); err != nil || size < tt.least || size > tt.most {
			t.Errorf("%d bytes after %d, %v", size, tt.written, err)
		}
	}
	for want, s := range map[string]store{
		"access":                     faulty{dir, nil, func(string) error { return storage.ErrAccess }},
		"not writable":               &readOnlyStore{Dir: dir, denied: true},
		"differ from the written":    damaging{dir},
		"accepts a second create of": overwriting{dir},
	} {
		if err := testStore(t.Context(), s, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for info, err := range dir.List(t.Context(), "probes/") {
		t.Errorf("left %s, %v", info.Key, err)
	}
	found, err := (&preflight{assigned: newAssigned(Assignment{Store: dir}, 1, nil, 0)}).store(t.Context())
	if err != nil || found == "" {
		t.Errorf("a preflight: %q, %v", found, err)
	}
}

// sized records the size of the largest object.
type sized struct {
	*storage.Dir
	size *int
}

func (s sized) Create(ctx context.Context, key string, data []byte) error {
	*s.size = max(*s.size, len(data))
	return s.Dir.Create(ctx, key, data)
}

// damaging is a store that changes bytes.
type damaging struct{ *storage.Dir }

func (d damaging) Get(ctx context.Context, key string) ([]byte, error) {
	data, err := d.Dir.Get(ctx, key)
	if len(data) > 0 {
		data[0]++
	}
	return data, err
}

// overwriting is a store whose create replaces objects.
type overwriting struct{ *storage.Dir }

func (o overwriting) Create(ctx context.Context, key string, data []byte) error {
	return o.Put(ctx, key, data)
}

// files are sources by path.
type files map[string]error

func (f files) Get(_ context.Context, path string) ([]byte, error) { return []byte(path), f[path] }

// Only failures of the environment fail the test of the sources, and only with the last good item or the failed one.
func TestProbeOfSources(t *testing.T) {
	t.Parallel()
	src := func(path string) *item.Source {
		return &item.Source{Path: path, SHA256: regular.SHA256([]byte(path))}
	}
	for name, tt := range map[string]struct {
		item item.Item
		fail bool
	}{
		"image":       {item.Item{Image: src("down")}, true},
		"measurement": {item.Item{Image: src("a"), Measurement: src("down")}, true},
		"mask":        {item.Item{Image: src("a"), Mask: src("down")}, true},
		"kernel":      {item.Item{Image: src("a"), Kernel: src("down")}, true},
		"good":        {item.Item{Image: src("a"), Mask: src("b")}, false},
		"missing":     {item.Item{Image: src("missing")}, false},
		"damaged":     {item.Item{Image: &item.Source{Path: "a", SHA256: "other"}}, false},
	} {
		w, dir := workerOf(t)
		from := files{"down": storage.ErrUnavailable, "missing": storage.ErrNotFound}
		in := newAssigned(Assignment{Campaign: "c", Store: dir, Sources: from}, 1, nil, 0)
		tk := &task{Job: job.Job{Item: tt.item}, assigned: in, ctx: t.Context()}
		if err := w.testSources(t.Context(), tk); errors.Is(err, storage.ErrUnavailable) != tt.fail || (err != nil) != tt.fail {
			t.Errorf("%s: %v", name, err)
		}
		// A test of the worker without sources, and with the item of a preflight.
		if err := w.test(t.Context(), tk, false); err != nil || w.watchdog.Active() {
			t.Errorf("%s without sources: %v", name, err)
		}
		check := &task{preflight: &record.Preflight{Items: []item.Item{tt.item}}, assigned: in, ctx: t.Context()}
		if err := w.test(t.Context(), check, true); (err != nil) != tt.fail {
			t.Errorf("%s in a preflight: %v", name, err)
		}
		w.breaker.Succeed("c", item.Item{Campaign: "c", Image: src("a")})
		if err := w.testSources(t.Context(), tk); err != nil {
			t.Errorf("%s after a good item: %v", name, err)
		}
		in.loader.Sources, in.Sources = nil, nil
		w.breaker.Succeed("c", item.Item{})
		if err := w.testSources(t.Context(), tk); err != nil {
			t.Errorf("%s without files: %v", name, err)
		}
	}
	tk := &task{Job: job.Job{Item: item.Item{ID: "own"}}, preflight: &record.Preflight{}}
	if tk.sample() != &tk.Item {
		t.Error("a preflight without items")
	}
}

// A preflight reads the files of an item: their number and size are counted, and the image is decoded.
func TestPreflightOfFiles(t *testing.T) {
	t.Parallel()
	src := func(path string) *item.Source {
		return &item.Source{Path: path, SHA256: regular.SHA256([]byte(path))}
	}
	in := newAssigned(Assignment{Sources: files{"down": storage.ErrUnavailable}}, 1, raster.NewBudget(1<<30), 0)
	p := &preflight{assigned: in}
	if n, size, err := p.readFiles(t.Context(), item.Item{Measurement: src("four"), Mask: src("three")}); n != 2 || size != 9 || err != nil {
		t.Errorf("%d files, %d bytes, %v", n, size, err)
	}
	if n, size, err := p.readFiles(t.Context(), item.Item{Image: src("text"), Mask: src("three")}); n != 0 || size != 0 || !errors.Is(err, raster.ErrFormat) {
		t.Errorf("%d files, %d bytes, %v", n, size, err)
	}
	p.sample = []item.Item{{Name: "a", Mask: src("down")}, {Name: "b", Kernel: src("kernel")}}
	if found, err := p.sources(t.Context()); err != nil || found != "1 files, 6 bytes" {
		t.Errorf("%q, %v", found, err)
	}
	p.sample = []item.Item{{Name: "a", Mask: src("down")}, {Name: "b", Image: src("text")}}
	if _, err := p.sources(t.Context()); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, raster.ErrFormat) {
		t.Errorf("the first error is %v", err)
	}
	p.EngineError = enginecache.ErrPriorFile
	if _, err := p.prior(t.Context()); !errors.Is(err, enginecache.ErrPriorFile) {
		t.Errorf("prior: %v", err)
	}
	p.EngineError, p.sample = nil, nil
	if _, err := p.prior(t.Context()); err == nil || !strings.Contains(err.Error(), "no items") {
		t.Errorf("prior: %v", err)
	}
}

// A simulated worker holds items for the sum of their times, and records the times of requests that returned items.
func TestSimulatedWorker(t *testing.T) {
	t.Parallel()
	now, n := &stoppedClock{time.Unix(0, 0)}, 0
	sim := &Simulation{Mean: time.Hour}
	for id := range 100 {
		d := sim.duration(fmt.Sprint(id))
		if d < 30*time.Minute || d > 90*time.Minute || d != sim.duration(fmt.Sprint(id)) {
			t.Errorf("item %d is held for %v", id, d)
		}
	}
	if r := sim.Report(); r != (SimulationReport{}) {
		t.Errorf("an empty report is %+v", r)
	}
	sim.Mean = 0
	w, _ := workerOf(t, func(c *Config) {
		c.Simulate, c.Now = sim, func() time.Time { now.time = now.time.Add(time.Second); return now.time }
		c.Work = Single{Queue: leases(func(int, time.Duration) ([]*queue.Lease, error) { return make([]*queue.Lease, n), nil }), Items: c.Work.(Single).Items}
	})
	s := w.restorer.(*simulator)
	for n = range 3 {
		if _, all, err := s.Next(t.Context(), 0); err != nil || len(all) != n {
			t.Errorf("%d items, %v", len(all), err)
		}
	}
	if r := sim.Report(); sim.asked != 2 || r.P50 != time.Second || r.P99 != time.Second {
		t.Errorf("%d requests, %+v", sim.asked, r)
	}
	tasks := []*task{{assigned: newAssigned(Assignment{}, 2, nil, 0)}, {}, {}, {}}
	if err := s.solve(t.Context(), tasks); s.size(tasks) != 4 || err != nil || tasks[3].Seconds != 0.25 || tasks[3].Batch != 4 {
		t.Errorf("%v, %g s", err, tasks[3].Seconds)
	}
	other := &simulator{core: s.core, simulation: sim}
	begin := now.time
	other.record(begin, begin.Add(2*time.Second), 1)
	other.record(begin.Add(6*time.Second), begin.Add(8*time.Second), 2)
	if r := sim.Report(); r.Workers != 2 || r.Items != 7 || !(math.Abs(r.Busy-5.0/9) <= 1e-9) {
		t.Errorf("%+v", r)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	sim.Mean = time.Hour
	if err := s.solve(ended, tasks); err == nil || sim.items != 7 {
		t.Errorf("a draining worker: %v", err)
	}
	if c, err := s.check(t.Context(), nil); err != nil || len(c.Checks) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	tk := solved(t, 0)
	_, dir := workerOf(t)
	tk.assigned.Store, tk.Batch = dir, 2
	for range 2 {
		res, err := s.finish(tk)
		if err != nil || res.Batch != 2 || res.Outcome != item.OutcomeDone {
			t.Errorf("%+v, %v", res, err)
		}
		tk.Batch = 3
	}
}

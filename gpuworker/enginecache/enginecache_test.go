package enginecache

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ddiff/gpuworker/workertest"
	"ddiff/internal/regular"
	"ddiff/manifest"
	"ddiff/restore"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/prior"
	"ddiff/restore/prior/haar"
	"ddiff/storage"
)

// must is workertest.Must.
var must = workertest.Must

// files is the store of a cluster, with a log of the caches.
type files struct {
	t     *testing.T
	store *storage.Dir
	log   strings.Builder
	out   *slog.Logger
}

func newFiles(t *testing.T) *files {
	c := &files{t: t, store: workertest.Store(t)}
	c.out = logTo(&c.log)
	return c
}

func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// prior stores a prior, as a coordinator does.
func (c *files) prior(data []byte) manifest.PriorFile {
	c.t.Helper()
	p := manifest.PriorFile{SHA256: regular.SHA256(data), Name: "tiny", License: "CC0-1.0"}
	p.Key = "priors/" + p.SHA256 + ".onnx"
	must(c.t, c.store.Put(c.t.Context(), p.Key, data))
	return p
}

// engines returns a cache for priors from the store.
func (c *files) engines(change ...func(*Config)) *Cache {
	c.t.Helper()
	cfg := Config{
		Runtime: onnxtest.Runtime(c.t), Store: c.store, Dir: c.t.TempDir(), Logger: c.out,
	}
	for _, f := range change {
		f(&cfg)
	}
	e, err := New(cfg)
	must(c.t, err)
	c.t.Cleanup(func() {
		if err := e.Close(); err != nil {
			c.t.Error(err)
		}
	})
	return e
}

// fetched waits until a prior is on this machine.
func fetched(t *testing.T, e *Cache, p manifest.PriorFile) error {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); time.Since(begin) < workertest.Patience; <-tick.C {
		if ready, err := e.Fetch(p); ready || err != nil {
			return err
		}
	}
	t.Fatal("timeout: the prior is not fetched")
	return nil
}

func TestEngineCacheClosesUnusedEnginesOnly(t *testing.T) {
	t.Parallel()
	c := newFiles(t)
	var priors []manifest.PriorFile
	size := 0
	for _, share := range []float32{0.1, 0.2, 0.3} {
		data := workertest.Share(t, share)
		size = len(data)
		priors = append(priors, c.prior(data))
	}
	dir := t.TempDir()
	e := c.engines(func(cfg *Config) {
		cfg.Dir, cfg.Bytes = dir, int64(4*(2*size+size/2)) // two engines
	})
	acquire := func(i int) (any, func()) {
		t.Helper()
		engine, done, err := e.Acquire(t.Context(), priors[i])
		must(t, err)
		if got := engine.Prior().SHA256; got != priors[i].SHA256 {
			t.Fatalf("the engine has the prior %.12s, want %.12s", got, priors[i].SHA256)
		}
		return engine, done
	}
	first, done0 := acquire(0)
	if again, done := acquire(0); again != first {
		t.Error("one prior has two engines")
	} else {
		done()
		done() // is idempotent
	}
	_, done1 := acquire(1)
	_, done2 := acquire(2) // all open engines are in use
	if again, done := acquire(0); again != first {
		t.Error("an engine in use was closed")
	} else {
		done()
	}
	done0()
	done1() // closes the least recently used engine
	done2()
	if n := strings.Count(c.log.String(), "closed prior"); n != 1 {
		t.Errorf("%d priors were closed, want 1:\n%s", n, c.log.String())
	}
	for _, p := range priors {
		file := filepath.Join(dir, p.SHA256+".onnx")
		if data, err := os.ReadFile(file); err != nil || regular.SHA256(data) != p.SHA256 {
			t.Errorf("%s is not cached: %v", file, err)
		}
	}
}

// A prior that does not fit beside an unused one closes it before the new engine opens.
func TestEngineCacheMakesRoomBeforeItOpens(t *testing.T) {
	t.Parallel()
	data := workertest.Share(t, 0.1)
	for factor, closed := range map[int]int{4: 1, 9: 0} { // memory for one engine, and for two
		c := newFiles(t)
		first, second := c.prior(data), c.prior(workertest.Share(t, 0.2))
		e := c.engines(func(cfg *Config) { cfg.Dir, cfg.Bytes = t.TempDir(), int64(factor*len(data)) })
		_, done, err := e.Acquire(t.Context(), first)
		must(t, err)
		done()
		_, done, err = e.Acquire(t.Context(), second)
		must(t, err)
		if n := strings.Count(c.log.String(), "closed prior"); n != closed {
			t.Errorf("memory for %d files: %d priors were closed, want %d:\n%s", factor, n, closed, c.log.String())
		}
		done()
	}
}

// counter is a store that counts reads. All reads fail with err.
type counter struct {
	*storage.Dir
	reads atomic.Int32
	err   error
}

func (c *counter) Get(ctx context.Context, key string) ([]byte, error) {
	c.reads.Add(1)
	if c.err != nil {
		return nil, c.err
	}
	return c.Dir.Get(ctx, key)
}

// Several caches share a directory, as processes do: a prior is fetched once, and again after damage.
func TestSharedDirectoryFetchesPriorOnce(t *testing.T) {
	t.Parallel()
	c := newFiles(t)
	p, dir, from := c.prior(workertest.Share(t, 0.1)), t.TempDir(), &counter{Dir: c.store}
	shared := func(cfg *Config) { cfg.Dir, cfg.Store = dir, from }
	var group sync.WaitGroup
	for range 4 {
		e := c.engines(shared)
		group.Go(func() {
			if err := fetched(t, e, p); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := from.reads.Load(); n != 1 {
		t.Errorf("the prior was read %d times from the store, want once", n)
	}
	file := filepath.Join(dir, p.SHA256+".onnx")
	must(t, os.WriteFile(file, []byte("damaged"), 0o644))
	must(t, fetched(t, c.engines(shared), p))
	if data, err := os.ReadFile(file); err != nil || regular.SHA256(data) != p.SHA256 {
		t.Errorf("the damaged prior was not replaced: %v", err)
	}
	if n := from.reads.Load(); n != 2 {
		t.Errorf("the prior was read %d times from the store, want twice", n)
	}
}

// The reason of an unusable prior names the remedy.
func TestUnusablePriors(t *testing.T) {
	t.Parallel()
	c := newFiles(t)
	other := c.prior(workertest.Share(t, 0.1))
	other.SHA256 = regular.SHA256([]byte("something else"))
	e := c.engines()
	for reason, p := range map[string]manifest.PriorFile{
		"submit the campaign again": other, "run the version that submitted it": {SHA256: other.SHA256},
	} {
		if err := fetched(t, e, p); !errors.Is(err, ErrPriorFile) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%v, want %q", err, reason)
		}
	}
	noModel := c.prior([]byte("no model"))
	must(t, fetched(t, e, noModel))
	if _, _, err := e.Acquire(t.Context(), noModel); !errors.Is(err, ErrPriorFile) {
		t.Errorf("not a model: error is %v", err)
	}
}

// The cache closes unused engines, the least recently used first, until the others fit.
func TestEngineCacheShrinks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit int64
		users string // of the engines a, b and c, of 10 bytes each
		want  string
	}{
		{30, "000", "abc"}, {29, "000", "bc"}, {20, "000", "bc"}, {19, "000", "c"}, {10, "000", "c"}, {9, "000", ""}, {-5, "000", ""},
		{20, "100", "ac"}, {10, "010", "b"}, {0, "111", "abc"}, {0, "021", "bc"},
	} {
		log := new(strings.Builder)
		e := &Cache{cfg: Config{Logger: logTo(log)}}
		for i, name := range []string{"a", "b", "c"} {
			e.open = append(e.open, &openEngine{engine: &restore.Engine{}, sha: strings.Repeat(name, 64), bytes: 10, users: int(c.users[i] - '0')})
		}
		e.shrink(c.limit)
		got := ""
		for _, o := range e.open {
			got += o.sha[:1]
		}
		if got != c.want {
			t.Errorf("limit %d, users %s: engines %q remain, want %q", c.limit, c.users, got, c.want)
		}
		if n := strings.Count(log.String(), "closed prior"); n != 3-len(c.want) || strings.Contains(log.String(), "could not") {
			t.Errorf("limit %d, users %s: log %s", c.limit, c.users, log)
		}
	}
}

// A failed fetch is repeated after 15 seconds; a fetch that succeeded is not.
func TestFetchesOfPriors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		log, store := new(strings.Builder), &counter{err: storage.ErrUnavailable}
		e, err := New(Config{Runtime: &onnxruntime.Runtime{}, Store: store, Dir: dir, Logger: logTo(log)})
		must(t, err)
		fetch := func(p manifest.PriorFile, wantReady bool, wantErr error, wantReads int) {
			t.Helper()
			ready, err := e.Fetch(p)
			synctest.Wait()
			if ready != wantReady || !errors.Is(err, wantErr) || int(store.reads.Load()) != wantReads {
				t.Errorf("ready %v, %v after %d reads; want %v, %v, %d", ready, err, store.reads.Load(), wantReady, wantErr, wantReads)
			}
		}
		lost := manifest.PriorFile{SHA256: strings.Repeat("a", 64), Key: "priors/a", Name: "lost"}
		fetch(lost, false, nil, 1)
		fetch(lost, false, storage.ErrUnavailable, 1)
		time.Sleep(fetchPause - 1)
		fetch(lost, false, storage.ErrUnavailable, 1)
		time.Sleep(time.Nanosecond)
		fetch(lost, false, nil, 2)
		fetch(lost, false, storage.ErrUnavailable, 2)
		if log.Len() > 0 {
			t.Errorf("log: %s", log)
		}

		data := []byte("a file")
		kept := manifest.PriorFile{SHA256: regular.SHA256(data), Key: "priors/b", Name: "kept"}
		must(t, regular.Replace(e.files.file(kept.SHA256), data, 0o600))
		fetch(kept, false, nil, 2)
		fetch(kept, true, nil, 2)
		time.Sleep(time.Hour)
		fetch(kept, true, nil, 2)
		if n := strings.Count(log.String(), "fetched prior"); n != 1 {
			t.Errorf("log: %s", log)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The default memory is 8 GiB. The message of a bad field names it.
func TestEngineCacheConfig(t *testing.T) {
	t.Parallel()
	good := Config{Runtime: &onnxruntime.Runtime{}, Store: &counter{}, Dir: t.TempDir()}
	e, err := New(good)
	if err != nil || e.cfg.Bytes != 8<<30 || e.cfg.Logger == nil {
		t.Fatalf("%+v, %v", e, err)
	}
	for field, change := range map[string]func(*Config){
		"Runtime is missing":    func(c *Config) { c.Runtime = nil },
		"Store is missing":      func(c *Config) { c.Store = nil },
		"Dir is missing":        func(c *Config) { c.Dir = "" },
		"Bytes: -1 is negative": func(c *Config) { c.Bytes = -1 },
	} {
		bad := good
		change(&bad)
		if _, err := New(bad); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// A file is fetched once, and again when its copy is damaged. A file that no retry could read is unusable.
func TestFetchOfPrior(t *testing.T) {
	t.Parallel()
	s := &counter{Dir: workertest.Store(t)}
	must(t, s.Put(t.Context(), "priors/a", []byte("model")))
	p := priorFiles{dir: t.TempDir(), store: s, kind: "prior", unusable: ErrPriorFile}
	from := manifest.PriorFile{Key: "priors/a", SHA256: regular.SHA256([]byte("model"))}
	for want := range 2 {
		for range 2 {
			if data, err := p.read(t.Context(), from); err != nil || string(data) != "model" || int(s.reads.Load()) != want+1 {
				t.Errorf("%q, %v, %d reads", data, err, s.reads.Load())
			}
		}
		must(t, os.WriteFile(p.file(from.SHA256), []byte("other"), 0o644))
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
	down.store, down.dir = &counter{err: storage.ErrUnavailable}, t.TempDir()
	if _, err := down.read(t.Context(), from); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, ErrPriorFile) {
		t.Errorf("an unavailable store: %v", err)
	}
	// Another process holds the lock.
	lock, err := storage.AcquireLock(filepath.Join(p.dir, "locks", other))
	must(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.lock(ended, other); !errors.Is(err, context.Canceled) {
		t.Errorf("a held lock: %v", err)
	}
	must(t, lock.Unlock())
	if lock, err = p.lock(t.Context(), other); err != nil || lock.Unlock() != nil {
		t.Errorf("a free lock: %v", err)
	}
}

// TestWorkerFetchesBundle: a worker gets a latent prior from the store as one archive and checks its parts.
func TestWorkerFetchesBundle(t *testing.T) {
	t.Parallel()
	pixels, err := prior.Read(prior.Bundled)
	must(t, err)
	dir := filepath.Join(t.TempDir(), "latent")
	must(t, haar.Write(dir, pixels, haar.Config{}))
	data, err := prior.Read(dir)
	must(t, err)
	c := newFiles(t)
	p := c.prior(data)
	engine, done, err := c.engines().Acquire(t.Context(), p)
	must(t, err)
	defer done()
	if got := engine.Prior(); got.SHA256 != p.SHA256 || !got.Space().Latent() {
		t.Errorf("the engine has the prior %s, latent %v", got.SHA256, got.Space().Latent())
	}

	// An archive whose decoder is the encoder of another bundle fits its card no more.
	encoder, err := os.ReadFile(filepath.Join(dir, "encoder.onnx"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "decoder.onnx"), encoder, 0o644))
	if _, err := prior.Read(dir); !errors.Is(err, prior.ErrBundle) {
		t.Errorf("exchanged file: %v", err)
	}
	at := strings.Index(string(data), "ConvTranspose")
	data[at] ^= 1
	if _, _, err := c.engines().Acquire(t.Context(), c.prior(data)); !errors.Is(err, ErrPriorFile) || !errors.Is(err, prior.ErrBundle) {
		t.Errorf("altered part: %v", err)
	}
}

// The check of a directory leaves no file in it.
func TestCheckOfDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	must(t, (priorFiles{dir: dir}).checkWritable())
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o644))
	if err := (priorFiles{dir: file}).checkWritable(); err == nil {
		t.Error("a file is a directory")
	}
}

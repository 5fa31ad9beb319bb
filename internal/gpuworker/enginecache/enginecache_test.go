package enginecache

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"ddiff/internal/gpuworker/workertest"
	"ddiff/internal/record"
	"ddiff/internal/regular"
	"ddiff/internal/restore/haar"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore"
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
func (c *files) prior(data []byte) record.PriorFile {
	c.t.Helper()
	p := record.PriorFile{SHA256: regular.SHA256(data), Name: "tiny", License: "CC0-1.0"}
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

func TestEngineCacheClosesUnusedEnginesOnly(t *testing.T) {
	t.Parallel()
	c := newFiles(t)
	var priors []record.PriorFile
	size := 0
	for _, share := range []float32{0.1, 0.2, 0.3} {
		data := workertest.Share(t, share)
		size = len(data)
		priors = append(priors, c.prior(data))
	}
	e := c.engines(func(cfg *Config) { cfg.Bytes = int64(4 * (2*size + size/2)) }) // two engines
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

// counter is a store that counts reads.
type counter struct {
	*storage.Dir
	reads atomic.Int32
}

func (c *counter) Get(ctx context.Context, key string) ([]byte, error) {
	c.reads.Add(1)
	return c.Dir.Get(ctx, key)
}

// Caches that share a directory, as processes do, fetch a prior once, and again after damage.
func TestPriorIsFetchedOnce(t *testing.T) {
	t.Parallel()
	c := newFiles(t)
	p, dir, from := c.prior(workertest.Share(t, 0.1)), t.TempDir(), &counter{Dir: c.store}
	acquire := func(want int32) {
		t.Helper()
		_, done, err := c.engines(func(cfg *Config) { cfg.Dir, cfg.Store = dir, from }).Acquire(t.Context(), p)
		must(t, err)
		done()
		if n := from.reads.Load(); n != want {
			t.Errorf("the prior was read %d times from the store, want %d", n, want)
		}
	}
	acquire(1)
	acquire(1)
	cached, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(cached) != 1 {
		t.Fatalf("files %v, %v", cached, err)
	}
	must(t, os.WriteFile(cached[0], []byte("damaged"), 0o644))
	acquire(2)
}

// The reason of an unusable prior names the remedy.
func TestUnusablePriors(t *testing.T) {
	t.Parallel()
	c := newFiles(t)
	other := c.prior(workertest.Share(t, 0.1))
	other.SHA256 = regular.SHA256([]byte("something else"))
	e := c.engines()
	for reason, p := range map[string]record.PriorFile{
		"submit the campaign again": other, "run the version that submitted it": {SHA256: other.SHA256},
	} {
		if _, _, err := e.Acquire(t.Context(), p); !errors.Is(err, ErrPriorFile) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%v, want %q", err, reason)
		}
	}
	noModel := c.prior([]byte("no model"))
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

// unavailable is a store that does not answer.
type unavailable struct{}

func (unavailable) Get(context.Context, string) ([]byte, error) { return nil, storage.ErrUnavailable }

// A file that no retry could read is unusable; one of a store that does not answer is not.
func TestFilesThatCannotBeFetched(t *testing.T) {
	t.Parallel()
	c := newFiles(t)
	must(t, c.store.Put(t.Context(), "priors/a", []byte("model")))
	e, other := c.engines(), regular.SHA256([]byte("other"))
	for name, bad := range map[string]record.PriorFile{
		"digest": {Key: "priors/a", SHA256: other}, "no digest": {Key: "priors/a", SHA256: "x"},
		"missing": {Key: "priors/b", SHA256: other}, "bad key": {Key: "../b", SHA256: other}, "bundled": {SHA256: other},
	} {
		if _, _, err := e.Acquire(t.Context(), bad); !errors.Is(err, ErrPriorFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
	down := c.engines(func(cfg *Config) { cfg.Store = unavailable{} })
	_, _, err := down.Acquire(t.Context(), record.PriorFile{Key: "priors/a", SHA256: regular.SHA256([]byte("model"))})
	if !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, ErrPriorFile) {
		t.Errorf("an unavailable store: %v", err)
	}
}

// TestWorkerFetchesBundle: a worker gets a latent prior from the store as one archive and checks its parts.
func TestWorkerFetchesBundle(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds: make test-all")
	}
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

type slowStore struct {
	*storage.Dir
	key     string
	begun   chan struct{}
	release chan struct{}
}

func (s *slowStore) Get(ctx context.Context, key string) ([]byte, error) {
	if key == s.key {
		close(s.begun)
		<-s.release
	}
	return s.Dir.Get(ctx, key)
}

// An open engine is available while another prior is fetched.
func TestOpenEngineDuringFetch(t *testing.T) {
	t.Parallel()
	c := newFiles(t)
	a, b := c.prior(workertest.Share(t, 0.1)), c.prior(workertest.Share(t, 0.2))
	s := &slowStore{Dir: c.store, key: b.Key, begun: make(chan struct{}), release: make(chan struct{})}
	e := c.engines(func(cfg *Config) { cfg.Store = s })
	_, done, err := e.Acquire(t.Context(), a)
	must(t, err)
	done()
	fetched := make(chan struct{})
	go func() {
		defer close(fetched)
		if _, done, err := e.Acquire(t.Context(), b); err == nil {
			done()
		}
	}()
	<-s.begun
	_, done, err = e.Acquire(t.Context(), a)
	must(t, err)
	done()
	close(s.release)
	<-fetched
}

// TestAttackForgedCache: another user who may write to the cache replaces a prior by a file with a digest of the cache. The prior of the
// campaign is loaded all the same.
func TestAttackForgedCache(t *testing.T) {
	t.Parallel()
	c := newFiles(t)
	p, other := c.prior(workertest.Share(t, 0.1)), workertest.Share(t, 0.2)
	dir := t.TempDir()
	name := regular.SHA256([]byte(p.SHA256))
	sum, err := hex.DecodeString(regular.SHA256(append([]byte(name), other...)))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, name), append(sum, other...), 0o644))
	e := c.engines(func(cfg *Config) { cfg.Dir = dir })
	engine, done, err := e.Acquire(t.Context(), p)
	must(t, err)
	defer done()
	if got := engine.Prior().SHA256; got != p.SHA256 {
		t.Errorf("the engine has the prior %.12s, want %.12s", got, p.SHA256)
	}
	if !strings.Contains(c.log.String(), "somebody changed the cached prior") {
		t.Errorf("log: %s", c.log.String())
	}
}

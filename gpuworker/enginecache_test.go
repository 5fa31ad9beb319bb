package gpuworker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/gpuworker"
	"ddiff/manifest"
	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/storage"
)

// priorBytes returns the file of a score model that predicts a share of the image as noise.
func priorBytes(t *testing.T, share float32) []byte {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, -1, 3, -1, -1)
	g.Input("t", onnx.Int64, -1)
	g.Output("eps", g.Mul(x, g.Scalar(share)))
	data, err := g.Marshal("tiny")
	must(t, err)
	return onnxtest.WithMetadata(t, data, card("tiny"))
}

// prior stores a prior in the cluster's store, as a coordinator does.
func (c *cluster) prior(data []byte) manifest.PriorFile {
	c.t.Helper()
	p := manifest.PriorFile{SHA256: hexDigest(data), Name: "tiny", License: "CC0-1.0"}
	p.Key = "priors/" + p.SHA256 + ".onnx"
	must(c.t, c.store.Put(c.t.Context(), p.Key, data))
	return p
}

// fetched waits until a prior is on this machine.
func fetched(t *testing.T, e *gpuworker.EngineCache, p manifest.PriorFile) error {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); time.Since(begin) < patience; <-tick.C {
		if ready, err := e.Fetch(p); ready || err != nil {
			return err
		}
	}
	t.Fatal("timeout: the prior is not fetched")
	return nil
}

func TestEngineCacheClosesUnusedEnginesOnly(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	var priors []manifest.PriorFile
	size := 0
	for _, share := range []float32{0.1, 0.2, 0.3} {
		data := priorBytes(t, share)
		size = len(data)
		priors = append(priors, c.prior(data))
	}
	dir := t.TempDir()
	e := c.engines(func(cfg *gpuworker.EngineCacheConfig) {
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
		t.Errorf("%d priors were closed, want 1:\n%s", n, c.log)
	}
	for _, p := range priors {
		file := filepath.Join(dir, p.SHA256+".onnx")
		if data, err := os.ReadFile(file); err != nil || hexDigest(data) != p.SHA256 {
			t.Errorf("%s is not cached: %v", file, err)
		}
	}
}

// A prior that does not fit beside an unused one closes it before the new engine opens.
func TestEngineCacheMakesRoomBeforeItOpens(t *testing.T) {
	t.Parallel()
	data := priorBytes(t, 0.1)
	for factor, closed := range map[int]int{4: 1, 9: 0} { // memory for one engine, and for two
		c := newCluster(t)
		first, second := c.prior(data), c.prior(priorBytes(t, 0.2))
		e := c.engines(func(cfg *gpuworker.EngineCacheConfig) { cfg.Dir, cfg.Bytes = t.TempDir(), int64(factor*len(data)) })
		_, done, err := e.Acquire(t.Context(), first)
		must(t, err)
		done()
		_, done, err = e.Acquire(t.Context(), second)
		must(t, err)
		if n := strings.Count(c.log.String(), "closed prior"); n != closed {
			t.Errorf("memory for %d files: %d priors were closed, want %d:\n%s", factor, n, closed, c.log)
		}
		done()
	}
}

// counter is a store that counts reads.
type counter struct {
	*recorder
	reads atomic.Int32
}

func (c *counter) Get(ctx context.Context, key string) ([]byte, error) {
	c.reads.Add(1)
	return c.recorder.Get(ctx, key)
}

// Several caches share a directory, as processes do: a prior is fetched once, and again after damage.
func TestSharedDirectoryFetchesPriorOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p, dir, from := c.prior(priorBytes(t, 0.1)), t.TempDir(), &counter{recorder: c.store}
	shared := func(cfg *gpuworker.EngineCacheConfig) { cfg.Dir, cfg.Store = dir, from }
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
	if data, err := os.ReadFile(file); err != nil || hexDigest(data) != p.SHA256 {
		t.Errorf("the damaged prior was not replaced: %v", err)
	}
	if n := from.reads.Load(); n != 2 {
		t.Errorf("the prior was read %d times from the store, want twice", n)
	}
}

func TestUnusablePriors(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	good := c.prior(priorBytes(t, 0.1))
	other := good
	other.SHA256 = hexDigest([]byte("something else"))
	missing := good
	missing.Key, missing.SHA256 = "priors/none.onnx", other.SHA256
	bundled := manifest.PriorFile{SHA256: other.SHA256}
	noDigest := manifest.PriorFile{Key: good.Key, SHA256: "../../etc/passwd"}
	e := c.engines()
	for name, want := range map[string]struct {
		prior  manifest.PriorFile
		reason string
	}{
		"other bytes":     {other, "submit the campaign again"},
		"not in store":    {missing, storage.ErrNotFound.Error()},
		"another version": {bundled, "run the version that submitted it"},
		"no digest":       {noDigest, "not a SHA-256"},
	} {
		err := fetched(t, e, want.prior)
		if !errors.Is(err, gpuworker.ErrPriorFile) || !strings.Contains(err.Error(), want.reason) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	noModel := c.prior([]byte("no model"))
	must(t, fetched(t, e, noModel))
	if _, _, err := e.Acquire(t.Context(), noModel); !errors.Is(err, gpuworker.ErrPriorFile) {
		t.Errorf("not a model: error is %v", err)
	}
}

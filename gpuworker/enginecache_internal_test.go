package gpuworker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ddiff/internal/regular"
	"ddiff/manifest"
	"ddiff/restore"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/storage"
)

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
		cfg := quietWorker(t, logTo(log)).cfg
		e := &EngineCache{cfg: EngineCacheConfig{Logger: cfg.Logger}}
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

// The end of a use closes an engine that does not fit, and that no other uses.
func TestEngineCacheRelease(t *testing.T) {
	t.Parallel()
	o := &openEngine{engine: &restore.Engine{}, sha: strings.Repeat("a", 64), bytes: 10, users: 2}
	e := &EngineCache{cfg: EngineCacheConfig{Bytes: 9, Logger: quietWorker(t).cfg.Logger}, open: []*openEngine{o}}
	e.release(o)
	if o.users != 1 || len(e.open) != 1 {
		t.Errorf("%d users, %d engines", o.users, len(e.open))
	}
	e.release(o)
	if o.users != 0 || len(e.open) != 0 {
		t.Errorf("%d users, %d engines", o.users, len(e.open))
	}
}

// failingGetter is a store that is not available.
type failingGetter struct{ reads int }

func (f *failingGetter) Get(context.Context, string) ([]byte, error) {
	f.reads++
	return nil, storage.ErrUnavailable
}

// A failed fetch is repeated after 15 seconds; a fetch that succeeded is not.
func TestFetchesOfPriors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		log, store := new(strings.Builder), &failingGetter{}
		e, err := NewEngineCache(EngineCacheConfig{Runtime: &onnxruntime.Runtime{}, Store: store, Dir: dir, Logger: quietWorker(t, logTo(log)).cfg.Logger})
		if err != nil {
			t.Fatal(err)
		}
		fetch := func(p manifest.PriorFile, wantReady bool, wantErr error, wantReads int) {
			t.Helper()
			ready, err := e.Fetch(p)
			synctest.Wait()
			if ready != wantReady || !errors.Is(err, wantErr) || store.reads != wantReads {
				t.Errorf("ready %v, %v after %d reads; want %v, %v, %d", ready, err, store.reads, wantReady, wantErr, wantReads)
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
		if err := regular.Replace(e.files.file(kept.SHA256), data); err != nil {
			t.Fatal(err)
		}
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
	good := EngineCacheConfig{Runtime: &onnxruntime.Runtime{}, Store: &failingGetter{}, Dir: t.TempDir()}
	e, err := NewEngineCache(good)
	if err != nil || e.cfg.Bytes != 8<<30 || e.cfg.Logger == nil {
		t.Fatalf("%+v, %v", e, err)
	}
	for field, change := range map[string]func(*EngineCacheConfig){
		"Runtime is missing":    func(c *EngineCacheConfig) { c.Runtime = nil },
		"Store is missing":      func(c *EngineCacheConfig) { c.Store = nil },
		"Dir is missing":        func(c *EngineCacheConfig) { c.Dir = "" },
		"Bytes: -1 is negative": func(c *EngineCacheConfig) { c.Bytes = -1 },
	} {
		bad := good
		change(&bad)
		if _, err := NewEngineCache(bad); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

package testbed

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestClusterGCBesideCampaigns collects garbage all the time while campaigns with a prior of their own are submitted, run, lose
// a worker that leaves checkpoints, and are archived. All files are made to look old, so that no age protects them, not even
// the temporary files of writes; only probes keep their age. Every item is restored, and every result verifies.
func TestClusterGCBesideCampaigns(t *testing.T) {
	t.Parallel()
	c := startCluster(t, Options{Directory: true})
	_, err := c.AddCoordinator(t.Context(), "--nats-wait", "30s", "--archive-after", "1s")
	must(t, err)
	first := worker(t, c, "--batch", "1")
	prior := filepath.Join(t.TempDir(), "prior.onnx")
	data := read(t, filepath.Join(root, "internal", "restore", "prior", "bundled", "prior.onnx"))
	write(t, prior, append(data, 0x32, 1, 'x')) // with a comment: it is not the bundled prior
	unused := filepath.Join(c.Store(), "priors", strings.Repeat("0", 64)+".onnx")
	must(t, os.MkdirAll(filepath.Dir(unused), 0o755))
	write(t, unused, []byte("unused"))

	stop := make(chan struct{})
	var collecting sync.WaitGroup
	collections, deleted := 0, 0
	collecting.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			makeOld(c.Store())
			e := ask(t, c, "gc", "--store", c.Store(), "--yes")
			if collections++; e.code != 0 {
				t.Errorf("gc: %v", e)
				return
			}
			if !strings.Contains(e.stdout, "objects=0 ") {
				deleted++
			}
		}
	})
	end := sync.OnceFunc(func() { close(stop); collecting.Wait() })
	defer end()
	a := submit(t, c, campaignFile(t, "first", "steps: 40", "prior: "+prior))
	wantFinished(t, c, a, 6)
	b := submit(t, c, campaignFile(t, "second", "steps: 41", "prior: "+prior))
	must(t, first.WaitLog(t.Context(), "item=chelsea attempt=1 task=super_resolution"))
	settled(t, c, b, 1)
	code, err := first.Stop(30 * time.Second)
	if err != nil || code != 0 {
		t.Errorf("the worker ended with code %d, %v", code, err)
	}
	worker(t, c, "--batch", "2")
	wantFinished(t, c, b, 6)
	end()
	if collections < 5 || deleted == 0 {
		t.Errorf("%d collections, %d of them deleted something", collections, deleted)
	}
	if _, err := os.Stat(unused); err == nil {
		makeOld(c.Store())
		wantCode(t, ask(t, c, "gc", "--store", c.Store(), "--yes"), 0)
		if _, err := os.Stat(unused); err == nil {
			t.Error("the unused prior is still in the store")
		}
	}
	for _, id := range []string{a, b} {
		e := ask(t, c, "verify", c.Results(id))
		if wantCode(t, e, 0); !strings.Contains(e.stdout, "checked=6 ok=6 wrong=0") {
			t.Errorf("verify: %v", e)
		}
	}
	// All objects of the folder of a campaign are deleted with its results, and those of the other one stay.
	e := ask(t, c, "delete", a, "--results", "--yes")
	if wantCode(t, e, 0); c.Settled(a) != 0 || !strings.Contains(e.stdout, a) {
		t.Errorf("delete --results: %v", e)
	}
	// No file may remain. A folder without one did once, on an overloaded machine.
	err = filepath.WalkDir(filepath.Join(c.Store(), a), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			t.Errorf("%s is still in the store", path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if e := ask(t, c, "verify", c.Results(b)); !strings.Contains(e.stdout, "checked=6 ok=6 wrong=0") {
		t.Errorf("verify: %v", e)
	}
	t.Logf("%d collections, %d of them deleted something", collections, deleted)
}

// makeOld sets the times of all files to a hundred hours ago, except those of probes. Files may vanish meanwhile.
func makeOld(dir string) {
	old := time.Now().Add(-100 * time.Hour)
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.Contains(path, "probes") {
			_ = os.Chtimes(path, old, old)
		}
		return nil
	})
}

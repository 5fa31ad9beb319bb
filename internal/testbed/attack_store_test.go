package testbed

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestAttackSharedOutput runs two campaigns with common items in one output. The first is deleted with its results as soon as it has
// ended, and garbage is collected all the time. The second keeps all its results.
func TestAttackSharedOutput(t *testing.T) {
	t.Parallel()
	c := startCluster(t, Options{Directory: true})
	coordinator(t, c)
	simulated(t, c, 50*time.Millisecond)
	simulated(t, c, 50*time.Millisecond)
	const few, many = 40, 120
	a := submit(t, c, listFile(t, "first", few), "--output", "shared", "--canary", "0")
	b := submit(t, c, listFile(t, "second", many), "--output", "shared", "--canary", "0")
	stop := make(chan struct{})
	var beside sync.WaitGroup
	defer beside.Wait()
	for _, args := range [][]string{{"gc", "--store", c.Store(), "--yes"}, {"delete", a, "--results", "--yes"}} {
		beside.Go(func() {
			deleted := false
			for {
				select {
				case <-stop:
					if args[0] == "delete" && !deleted {
						t.Error("the first campaign was never deleted")
					}
					return
				default:
				}
				makeOld(c.Store())
				e := ask(t, c, args...)
				if deleted = deleted || e.code == 0; args[0] == "gc" && e.code != 0 {
					t.Errorf("gc: %v", e)
				}
			}
		})
	}
	defer close(stop)
	wantFinished(t, c, b, many)
	if n := c.Settled("shared"); n != many {
		t.Errorf("%d results of the second campaign, want %d", n, many)
	}
}

// TestAttackDeletedResults deletes half of the results of a campaign while it runs, in a real bucket. Their items are restored again
// before it finishes.
func TestAttackDeletedResults(t *testing.T) {
	t.Parallel()
	c := startCluster(t, Options{})
	coordinator(t, c)
	simulated(t, c, 100*time.Millisecond)
	const items, half = 60, 15
	id := submit(t, c, listFile(t, "deleted", items), "--canary", "0")
	settled(t, c, id, 2*half)
	found, err := filepath.Glob(filepath.Join(c.Results(id), "items", "*"))
	must(t, err)
	for _, dir := range found[:half] {
		must(t, os.RemoveAll(dir))
	}
	wantFinished(t, c, id, items)
	if n := c.Settled(id); n != items {
		t.Errorf("%d results, want %d", n, items)
	}
}

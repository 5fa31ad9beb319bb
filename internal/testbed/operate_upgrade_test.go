package testbed

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestOperateUpgrade replaces two coordinators and four workers of an earlier version one after the other while a campaign runs, as
// docs/operations.md says: standbys, the leader, workers. Each ends within its grace period, and every item is done once.
func TestOperateUpgrade(t *testing.T) {
	t.Parallel()
	onlyBy(t, "make operate-test", "DDIFF_OPERATE")
	const items, workers = 1500, 4
	const grace = 20 * time.Second
	earlier := earlierProgram(t)
	c := startCluster(t, Options{Directory: true})
	c.o.Program = earlier
	for range 2 {
		coordinator(t, c)
	}
	for range workers {
		simulated(t, c, 150*time.Millisecond)
	}
	c.o.Program = program // commands
	dir := t.TempDir()
	var list strings.Builder
	list.WriteString("image,sha256,width,height\n")
	for i := range items {
		fmt.Fprintf(&list, "s3://images/%06d.png,%064x,64,64\n", i, i+1)
	}
	write(t, filepath.Join(dir, "list.csv"), []byte(list.String()))
	file := filepath.Join(dir, "rolling.yaml")
	// The earlier version lacks parameters that the other tasks have now.
	write(t, file, []byte("name: rolling\ndataset: {path: list.csv, size: 64}\ntasks: [phase_retrieval]\nattempts: 3\n"))
	id := submit(t, c, file, "--canary", "0")
	settled(t, c, id, 20)
	replace := func(t *testing.T, p *Process, ready string) {
		t.Helper()
		before := c.Settled(id)
		if before >= items {
			t.Errorf("the campaign ended before %s was replaced", p.Name)
		}
		begin := time.Now()
		code, err := p.Stop(grace + 10*time.Second)
		must(t, err)
		if took := time.Since(begin); code != 0 || took > grace {
			t.Errorf("%s ended with code %d after %v", p.Name, code, took)
		}
		p.path = program
		must(t, p.Start())
		must(t, p.WaitLog(t.Context(), ready))
		settled(t, c, id, min(before+20, items))
	}
	var leader *Process
	steps := []step{
		{"standby", func(t *testing.T) {
			var err error
			leader, err = c.Leader(t.Context())
			must(t, err)
			for _, p := range c.Coordinators {
				if p != leader {
					replace(t, p, "coordinator is ready")
				}
			}
		}},
		{"leader", func(t *testing.T) { replace(t, leader, "coordinator is ready") }},
	}
	for _, p := range c.Workers {
		steps = append(steps, step{p.Name, func(t *testing.T) { replace(t, p, "worker is ready") }})
	}
	takeSteps(t, append(steps,
		step{"versions", func(t *testing.T) {
			var all []struct{ Version string }
			out, err := c.Output(t.Context(), "workers", "--json")
			must(t, err)
			must(t, json.Unmarshal([]byte(out), &all))
			versions := map[string]int{}
			for _, w := range all {
				versions[w.Version]++
			}
			if len(versions) != 1 || len(all) != workers {
				t.Errorf("workers by version: %v", versions)
			}
		}},
		step{"end", func(t *testing.T) {
			wantFinished(t, c, id, items)
			if n := c.Settled(id); n != items {
				t.Errorf("%d results, want %d", n, items)
			}
		}}))
}

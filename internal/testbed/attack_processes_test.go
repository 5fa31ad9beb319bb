package testbed

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ddiff/manifest"
)

// TestAttackSuspendedWorker suspends a worker for ten leases, in which another one restores its items. Its late results
// neither count nor replace the others, also if the campaign has been deleted meanwhile.
func TestAttackSuspendedWorker(t *testing.T) {
	t.Parallel()
	onlyBy(t, "make attacks", "DDIFF_ATTACKS")
	const items, leaseTime = 6, 3 * time.Second
	c := startCluster(t, Options{Directory: true, Lease: leaseTime})
	coordinator(t, c)
	for _, deleted := range []bool{false, true} {
		late := simulated(t, c, 2*time.Second)
		id := submit(t, c, listFile(t, "late-"+strconv.FormatBool(deleted), items), "--canary", "0")
		settled(t, c, id, 1)
		must(t, late.Signal(syscall.SIGSTOP))
		begin := time.Now()
		other := simulated(t, c, 100*time.Millisecond)
		wantFinished(t, c, id, items)
		stamps := func() map[string]time.Time {
			found, err := filepath.Glob(filepath.Join(c.Results(id), "items", "*", manifest.FileResult))
			must(t, err)
			all := map[string]time.Time{}
			for _, path := range found {
				info, err := os.Stat(path)
				must(t, err)
				all[path] = info.ModTime()
			}
			return all
		}
		before := stamps()
		if deleted {
			wantCode(t, ask(t, c, "delete", id, "--results", "--yes"), 0)
		}
		sleep(t.Context(), 10*leaseTime-time.Since(begin))
		must(t, late.Signal(syscall.SIGCONT))
		sleep(t.Context(), 3*leaseTime)
		if deleted { // a late result is garbage
			makeOld(c.Store())
			wantCode(t, ask(t, c, "gc", "--results", "--older-than", "1h", "--yes"), 0)
			if n := c.Settled(id); n != 0 {
				t.Errorf("%d results of the deleted campaign are left", n)
			}
		} else {
			for path, at := range stamps() {
				if !before[path].Equal(at) {
					t.Errorf("%s was replaced", path)
				}
			}
			wantFinished(t, c, id, items)
		}
		for _, p := range []*Process{late, other} {
			if code, err := p.Stop(20 * time.Second); err != nil || code != 0 {
				t.Errorf("%s ended with %d, %v", p.Name, code, err)
			}
		}
	}
}

// TestAttackKillAll kills all processes every two seconds from the first result on, with the default number of attempts. No item is
// lost or dead.
func TestAttackKillAll(t *testing.T) {
	t.Parallel()
	onlyBy(t, "make attacks", "DDIFF_ATTACKS")
	const items, rounds = 120, 10
	c := startCluster(t, Options{Lease: 2 * time.Second})
	coordinator(t, c)
	for range 2 {
		simulated(t, c, 150*time.Millisecond)
	}
	file := listFile(t, "killed", items)
	write(t, file, []byte(strings.Replace(string(read(t, file)), "attempts: 10\n", "", 1)))
	id := submit(t, c, file, "--canary", "0")
	all := append([]*Process{c.S3.Server, c.NATS.Servers[0]}, append(c.Coordinators, c.Workers...)...)
	settled(t, c, id, 1) // a campaign whose start ends two coordinators is rejected
	for range rounds {
		sleep(t.Context(), 2*time.Second)
		t.Logf("%d items have a result", c.Settled(id))
		for _, p := range all {
			p.Kill()
		}
		for i, p := range all {
			must(t, p.Start())
			switch i {
			case 0:
				must(t, c.S3.Ready(t.Context()))
			case 1:
				must(t, c.NATS.Ready(t.Context(), 0))
			default:
				must(t, p.WaitLog(t.Context(), " is ready"))
			}
		}
	}
	wantFinished(t, c, id, items)
	if n := c.Settled(id); n != items {
		t.Errorf("%d results, want %d", n, items)
	}
}

package testbed

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/coordinator/board"
	"ddiff/manifest"
	"ddiff/queue"
)

// TestAttackBusyWorkers opens 300 campaigns of one row at once on 400 simulated workers whose items take a day. No preflight may
// wait behind an item.
func TestAttackBusyWorkers(t *testing.T) {
	onlyBy(t, "make attacks", "DDIFF_ATTACKS")
	const campaigns = 300
	c, ids := attackCampaigns(t, campaigns, "--simulate", "24h", "--simulate-workers", "400")
	took := attackPhase(t, c, ids, func(s manifest.CampaignStatus) bool { return s.Campaign.Released })
	for _, args := range [][]string{{"list"}, {"status", ids[0]}, {"submit", listFile(t, "last", 1)}} {
		begin := time.Now()
		e := ask(t, c, args...)
		wantCode(t, e, 0)
		t.Logf("%s: %v", args[0], time.Since(begin).Round(time.Millisecond))
		if n := strings.Count(e.stdout, "\n"); args[0] == "list" && n != campaigns+1 {
			t.Errorf("%d lines of the list, want %d", n, campaigns+1)
		}
	}
	rss, err := residentMemory(c.Coordinators[0].PID())
	must(t, err)
	if t.Logf("all released after %v, coordinator %d MiB", took, rss>>20); rss > 512<<20 {
		t.Errorf("the coordinator has %d MiB", rss>>20)
	}
}

// TestAttackTinyCampaigns submits a thousand campaigns of one row, as a script does. All finish and reach the archive.
func TestAttackTinyCampaigns(t *testing.T) {
	onlyBy(t, "make attacks", "DDIFF_ATTACKS")
	const campaigns = 1000
	c, ids := attackCampaigns(t, campaigns, "--simulate", "1ms", "--simulate-workers", "20")
	took := attackPhase(t, c, ids, func(s manifest.CampaignStatus) bool {
		return s.Campaign.Phase == manifest.PhaseFinished && s.Status.Counts.Done == 1
	})
	begin := time.Now()
	e := ask(t, c, "list", "--all")
	if n := strings.Count(e.stdout, " finished "); e.code != 0 || n != campaigns {
		t.Errorf("the list has %d finished campaigns, want %d: code %d, %s", n, campaigns, e.code, e.stderr)
	}
	rss, err := residentMemory(c.Coordinators[0].PID())
	must(t, err)
	t.Logf("all finished after %v, list --all: %v, coordinator %d MiB", took, time.Since(begin).Round(time.Millisecond), rss>>20)
}

// attackCampaigns starts a cluster with one process of simulated workers, and submits campaigns of one row.
func attackCampaigns(t *testing.T, campaigns int, workers ...string) (*Cluster, []string) {
	t.Helper()
	c := startCluster(t, Options{Directory: true, Lease: time.Minute, Election: 10 * time.Second})
	coordinator(t, c)
	worker(t, c, workers...)
	ids, err := submitAll(t.Context(), attackBoard(t, c), modelOptions{campaigns: campaigns, rows: 1}, t.TempDir())
	must(t, err)
	return c, ids
}

// attackBoard opens the board with the role of commands.
func attackBoard(t *testing.T, c *Cluster) *queue.Board {
	t.Helper()
	nc, err := c.NATS.connect(t.Context(), RoleCommand)
	must(t, err)
	t.Cleanup(nc.Close)
	kv, err := queue.OpenBoard(t.Context(), nc)
	must(t, err)
	return kv
}

// attackPhase waits until a condition holds for each campaign.
func attackPhase(t *testing.T, c *Cluster, ids []string, reached func(s manifest.CampaignStatus) bool) time.Duration {
	t.Helper()
	kv, begin := attackBoard(t, c), time.Now()
	for {
		all, _, err := board.Campaigns(t.Context(), kv)
		must(t, err)
		n, last := 0, ""
		for _, s := range all {
			if reached(s) {
				n++
			} else {
				last = fmt.Sprintf("%s is %s: %s", s.Campaign.ID, s.Campaign.Phase, s.Status.Problem)
			}
		}
		switch took := time.Since(begin).Round(100 * time.Millisecond); {
		case n == len(ids):
			return took
		case took > 3*time.Minute:
			t.Fatalf("%d of %d campaigns after %v; %s\n%s", n, len(ids), took, last, tail(c.Coordinators[0].Log()))
		}
		sleep(t.Context(), 200*time.Millisecond)
	}
}

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
	for _, args := range [][]string{{"gc", "--results", "--older-than", "1h", "--yes"}, {"delete", a, "--results", "--yes"}} {
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

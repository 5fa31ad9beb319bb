package coordinator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/record"
	"ddiff/internal/retry"
	"ddiff/manifest"
	"ddiff/storage"
)

// inject returns a function that injects a fault at each write with a name.
func inject(name string, f fault) func(write string) fault {
	return func(write string) fault {
		if write == name {
			return f
		}
		return noFault
	}
}

// dieAtWindow starts a coordinator that dies when it stores a window, and waits for its death.
func (tc *testCluster) dieAtWindow(f fault) {
	tc.t.Helper()
	p := tc.leadUntilCrash(inject("store shards", f))
	<-p.crashed
	p.stop()
}

// wantNoMark checks that no count of starts is left.
func (tc *testCluster) wantNoMark(id string) {
	tc.t.Helper()
	if c, err := board.Read(tc.t.Context(), tc.board, id); err != nil || c.Start != nil {
		tc.t.Errorf("record %+v, %v", c, err)
	}
}

// TestCampaignThatEndsCoordinators is parked after two deaths, cancelled without another start, and starts again when a
// person resumes it. Other campaigns run.
func TestCampaignThatEndsCoordinators(t *testing.T) {
	if testing.Short() {
		t.Skip("ends coordinators for half a minute: make test-all")
	}
	t.Parallel()
	tc := newTestCluster(t, 2)
	id := tc.submit("deadly", 0)
	tc.dieAtWindow(crashBefore)
	tc.dieAtWindow(crashBefore)

	p := tc.leadUntilCrash(inject("store shards", crashBefore))
	s := tc.awaitPhase(id, record.PhaseRejected)
	if !strings.Contains(s.Campaign.Reason, "2 coordinators have died while they started this campaign, the last was coordinator at ") {
		t.Errorf("reason %q", s.Campaign.Reason)
	}
	_, err := recordtest.Want(t.Context(), tc.board, tc.store, id, record.WantCancelNow)
	must(t, err)
	tc.awaitPhase(id, record.PhaseCancelled)
	p.stop()
	if p.isDead() {
		t.Fatal("the campaign was started again")
	}

	_, err = recordtest.Want(t.Context(), tc.board, tc.store, id, record.WantRun)
	must(t, err)
	tc.dieAtWindow(crashBefore) // the first start after that
	tc.lead()
	tc.work(id)
	tc.awaitDone(id, 4)
	tc.wantNoMark(id)
	other := tc.submit("other", 0)
	tc.work(other)
	tc.awaitDone(other, 4)
	tc.wantNoMark(other)
}

// TestStartsOfStoppedCoordinators are not counted: a store that refuses windows interrupts the campaign, and the
// coordinators are stopped.
func TestStartsOfStoppedCoordinators(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	id := tc.submit("restarted", 0)
	for range 3 {
		p := tc.leadUntilCrash(inject("store shards", failWrite))
		tc.await(id, "an interruption", func(s record.CampaignStatus) bool { return strings.Contains(s.Status.Problem, "interrupted") })
		p.stop()
		must(t, tc.board.Delete(t.Context(), record.KeyStatusPrefix+id))
		tc.wantNoMark(id)
	}
	tc.lead()
	tc.work(id)
	tc.awaitDone(id, 4)
}

// TestStartsOfCoordinatorThatLives: a coordinator that could not reach the queue when it ended its start is not taken for dead. Each of two
// such coordinators would otherwise count the other one, until one rejects the campaign.
func TestStartsOfCoordinatorThatLives(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	id := tc.submit("divided", 0)
	c, err := board.Read(t.Context(), tc.board, id)
	must(t, err)
	c.Start = &record.Start{Count: 2, Process: "other process", Coordinator: "other", At: time.Now().UTC()}
	put := func(key string, record any) {
		data, err := json.Marshal(record)
		must(t, err)
		if err := tc.board.Put(t.Context(), key, data); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	}
	put(record.KeyCampaignPrefix+id, c)
	tc.background(func(ctx context.Context) error {
		for ctx.Err() == nil {
			put(record.KeyCoordinatorPrefix+"other", record.CoordinatorBeat{Name: "other", ID: c.Start.Process, At: time.Now().UTC()})
			_ = retry.Sleep(ctx, 50*time.Millisecond)
		}
		return nil
	})
	service, err := coordinator.New(tc.config(func(c *coordinator.Config) { c.Probe = 2 * time.Second })) // a loaded machine delays the beats of the other one
	must(t, err)
	tc.background(service.CheckHealth)
	tc.background(service.Lead)
	tc.work(id)
	tc.awaitDone(id, 4)
	tc.wantNoMark(id)
}

// TestStartsWithProgress kills three coordinators, each after it has stored another window. The campaign is not parked.
func TestStartsWithProgress(t *testing.T) {
	if testing.Short() {
		t.Skip("crashes coordinators for a quarter of a minute: make test-all")
	}
	t.Parallel()
	tc := newTestCluster(t, 0)
	tc.rows, tc.window = hintedRows(5*16), 32 // 5 windows
	tc.abandonAll()
	id := tc.submit("progress", 0)
	tc.work(id)
	for range 3 {
		stored := 0
		p := tc.leadUntilCrash(func(write string) fault {
			if write == "store shards" {
				stored++
			}
			if stored == 2 {
				return crashBefore
			}
			return noFault
		})
		<-p.crashed
		p.stop()
	}
	if n := len(tc.windows(id)); n != 3 {
		t.Fatalf("%d windows", n)
	}
	tc.leadUntilCrash(inject("nothing", noFault))
	tc.await(id, "all windows", func(s record.CampaignStatus) bool {
		return s.Status.Complete && s.Status.Windows == len(tc.windows(id))
	})
	tc.wantNoMark(id)
}

// TestStartsOfWaitingCampaigns: a campaign that a dead coordinator had started, and that reads nothing because it waits for others,
// counts as started. Another such campaign starts beside it, and the deaths of further coordinators are not its fault.
func TestStartsOfWaitingCampaigns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		phase   record.Phase
		problem string
		rows    shard.Rows
	}{
		{name: "preflight", phase: record.PhasePreflight, rows: hintedRows(2 * 16)},
		{name: "dataset", phase: record.PhaseQueued, problem: "waiting for the dataset", rows: filteredRows(hintedRows(1), func(*manifest.Row) (bool, error) {
			return false, fmt.Errorf("list: %w", storage.ErrUnavailable)
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tc := newTestCluster(t, 0)
			tc.window = 32
			ids := []string{tc.submit("one", 0), tc.submit("two", 0)}
			lead := func() (stop func()) {
				stop = tc.leadWith(func(cfg *coordinator.Config) { cfg.Rows = c.rows })
				for _, id := range ids {
					tc.await(id, "the wait of the campaign", func(s record.CampaignStatus) bool {
						return s.Status.Phase == c.phase && strings.Contains(s.Status.Problem, c.problem)
					})
				}
				return stop
			}
			lead()()
			for _, id := range ids {
				must(t, tc.board.Delete(t.Context(), record.KeyStatusPrefix+id))
				_, err := recordtest.Update(t.Context(), tc.board, tc.store, id, func(c *record.Campaign) error {
					c.Start = &record.Start{Count: 1, Coordinator: "dead"}
					return nil
				})
				must(t, err)
			}
			defer lead()()
			for _, id := range ids {
				tc.await(id, "one counted start", func(s record.CampaignStatus) bool {
					start := s.Campaign.Start
					return start != nil && start.Count == 1 && start.Process != ""
				})
			}
		})
	}
}

package coordinator_test

import (
	"errors"
	"strings"
	"testing"

	"ddiff/coordinator/board"
	"ddiff/manifest"
	"ddiff/queue"
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
	if data, _, err := tc.board.Get(tc.t.Context(), manifest.KeyStartPrefix+id); !errors.Is(err, queue.ErrNoRecord) {
		tc.t.Errorf("record %q, %v", data, err)
	}
}

// TestCampaignThatEndsCoordinators is parked after two deaths, cancelled without another start, and starts again when a
// person resumes it. Other campaigns run.
func TestCampaignThatEndsCoordinators(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	id := tc.submit("deadly", 0)
	tc.dieAtWindow(crashBefore)
	tc.dieAtWindow(crashBefore)

	p := tc.leadUntilCrash(inject("store shards", crashBefore))
	s := tc.awaitPhase(id, manifest.PhaseRejected)
	if !strings.Contains(s.Campaign.Reason, "2 coordinators have died while they started this campaign, the last was coordinator at ") {
		t.Errorf("reason %q", s.Campaign.Reason)
	}
	_, err := board.Want(t.Context(), tc.board, id, manifest.WantCancelNow)
	must(t, err)
	tc.awaitPhase(id, manifest.PhaseCancelled)
	p.stop()
	if p.isDead() {
		t.Fatal("the campaign was started again")
	}

	_, err = board.Want(t.Context(), tc.board, id, manifest.WantRun)
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
	for range 4 {
		p := tc.leadUntilCrash(inject("store shards", failWrite))
		tc.await(id, "an interruption", func(s manifest.CampaignStatus) bool { return strings.Contains(s.Status.Problem, "interrupted") })
		p.stop()
		must(t, tc.board.Delete(t.Context(), manifest.KeyStatusPrefix+id))
		tc.wantNoMark(id)
	}
	tc.lead()
	tc.work(id)
	tc.awaitDone(id, 4)
}

// TestStartsWithProgress kills three coordinators, each after it has stored another window. The campaign is not parked.
func TestStartsWithProgress(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 0)
	tc.rows = hintedRows(5 * 2048) // 5 windows
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
	tc.await(id, "all windows", func(s manifest.CampaignStatus) bool { return s.Status.Complete && s.Campaign.Complete })
	tc.wantNoMark(id)
}

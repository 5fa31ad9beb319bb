package coordinator_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"ddiff/coordinator/board"
	"ddiff/manifest"
)

// TestTakeoverKeepsCounts: a new leader reads the outcomes of a campaign again. Meanwhile its status does not fall behind that of the old
// one, which people watch.
func TestTakeoverKeepsCounts(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 15)
	id, last, stop := tc.halfDone("takeover", 15)
	for range 2 {
		stop()
		end := tc.statuses(id)
		stop = tc.lead()
		time.Sleep(500 * time.Millisecond)
		all := end()
		for _, s := range all {
			if s.Counts.Done < last.Done {
				t.Errorf("the status has %+v after %+v", s.Counts, last)
			}
			last = s.Counts
		}
		t.Logf("%d statuses", len(all))
	}
	tc.work(id)
	tc.awaitPhase(id, manifest.PhaseFinished)
}

// halfDone submits a campaign of two tasks and restores at least as many of its items as there are images. stop ends its coordinator.
func (tc *testCluster) halfDone(name string, images int) (id string, n manifest.Counts, stop func()) {
	tc.t.Helper()
	id = tc.submit(name, 0)
	stop = tc.lead()
	gate := tc.gated()
	permit(gate, images)
	stopWork := tc.work(id)
	tc.await(id, "half", func(s manifest.CampaignStatus) bool { return s.Status.Counts.Done >= images })
	var stopping sync.WaitGroup
	stopping.Go(stopWork)
	close(gate) // the worker waits for a permit
	stopping.Wait()
	s := tc.await(id, "all outcomes", func(s manifest.CampaignStatus) bool {
		return s.Status.Counts.Running == 0 && s.Status.Counts.Done == tc.results(id)
	})
	return id, s.Status.Counts, stop
}

// statuses collects the different statuses of a campaign until the returned function is called.
func (tc *testCluster) statuses(id string) (end func() []manifest.Status) {
	var all []manifest.Status
	stop := tc.background(func(ctx context.Context) error {
		for revision := uint64(0); ctx.Err() == nil; pause(ctx, time.Millisecond) {
			data, at, err := tc.board.Get(ctx, manifest.KeyStatusPrefix+id)
			if err != nil || at == revision {
				continue
			}
			var s manifest.Status
			if err := json.Unmarshal(data, &s); err != nil {
				return err
			}
			all, revision = append(all, s), at
		}
		return nil
	})
	return func() []manifest.Status {
		stop()
		return all
	}
}

// TestCancelAtTakeover: a campaign that is cancelled while no coordinator leads has the outcomes of its items in its last status.
func TestCancelAtTakeover(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 8)
	id, n, stop := tc.halfDone("cancelled", 8)
	stop()
	_, err := board.Want(t.Context(), tc.board, id, manifest.WantCancel)
	must(t, err)
	tc.lead()
	want := manifest.Counts{Items: n.Items, Done: n.Done, Cancelled: n.Items - n.Done}
	if got := tc.awaitPhase(id, manifest.PhaseCancelled).Status.Counts; got != want {
		t.Errorf("the first status is %+v, want %+v", got, want)
	}
	time.Sleep(300 * time.Millisecond)
	if got := tc.awaitPhase(id, manifest.PhaseCancelled).Status.Counts; got != want {
		t.Errorf("the last status is %+v, want %+v", got, want)
	}
}

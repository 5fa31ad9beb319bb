package coordinator_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/record"
	"ddiff/restore/item"
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
		tc.restoreSome(id, 1) // the leader counts it after those that it reads again
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
	tc.awaitPhase(id, record.PhaseFinished)
}

// halfDone submits a campaign of two tasks and restores at least as many of its items as there are images. stop ends its coordinator.
func (tc *testCluster) halfDone(name string, images int) (id string, n record.Counts, stop func()) {
	tc.t.Helper()
	id = tc.submit(name, 0)
	stop = tc.lead()
	return id, tc.restoreSome(id, images), stop
}

// restoreSome restores n items of a campaign, or some more, and returns its counts.
func (tc *testCluster) restoreSome(id string, n int) record.Counts {
	tc.t.Helper()
	gate, before := make(chan struct{}), tc.results(id)
	tc.set(func(item.Item, int) error { <-gate; return nil })
	stop := tc.work(id)
	permit(gate, n)
	tc.await(id, "some outcomes", func(s record.CampaignStatus) bool { return s.Status.Counts.Done >= before+n })
	stopped := make(chan struct{})
	go func() {
		stop()
		close(stopped)
	}()
	for working := true; working; {
		select {
		case gate <- struct{}{}: // for the item that the worker has leased
		case <-stopped:
			working = false
		}
	}
	tc.set(nil)
	return tc.await(id, "all outcomes", func(s record.CampaignStatus) bool {
		return s.Status.Counts.Running == 0 && s.Status.Counts.Done == tc.results(id)
	}).Status.Counts
}

// statuses collects the different statuses of a campaign until the returned function is called.
func (tc *testCluster) statuses(id string) (end func() []record.Status) {
	var all []record.Status
	stop := tc.background(func(ctx context.Context) error {
		for revision := uint64(0); ctx.Err() == nil; pause(ctx, time.Millisecond) {
			data, at, err := tc.board.Get(ctx, record.KeyStatusPrefix+id)
			if err != nil || at == revision {
				continue
			}
			var s record.Status
			if err := json.Unmarshal(data, &s); err != nil {
				return err
			}
			all, revision = append(all, s), at
		}
		return nil
	})
	return func() []record.Status {
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
	_, err := recordtest.Want(t.Context(), tc.board, tc.store, id, record.WantCancel)
	must(t, err)
	var steps atomic.Int64
	tc.leadWith(func(cfg *coordinator.Config) {
		cfg.Now = func() time.Time { steps.Add(1); return time.Now() }
	})
	want := record.Counts{Items: n.Items, Done: n.Done, Cancelled: n.Items - n.Done}
	if got := tc.awaitPhase(id, record.PhaseCancelled).Status.Counts; got != want {
		t.Errorf("the first status is %+v, want %+v", got, want)
	}
	after := steps.Load()
	wait(t, patience, "more steps of the leader", func() bool { return steps.Load() > after+20 })
	if got := tc.awaitPhase(id, record.PhaseCancelled).Status.Counts; got != want {
		t.Errorf("the last status is %+v, want %+v", got, want)
	}
}

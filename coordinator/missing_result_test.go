package coordinator_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/record"
	"ddiff/restore/item"
)

// TestFinishNeedsStoredResults runs a campaign with a worker that stores its results elsewhere. The campaign does not
// finish with them: its items run again, and then the campaign pauses with the reason.
func TestFinishNeedsStoredResults(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	tc.lead()
	id := tc.submit("elsewhere", 0)
	tc.workers = newStore(t)
	stop := tc.work(id)
	s := tc.await(id, "a pause", func(s record.CampaignStatus) bool { return s.Campaign.Phase == record.PhasePaused })
	if !strings.Contains(s.Campaign.Reason, "4 results that workers have reported are missing from the store") {
		t.Errorf("reason %q", s.Campaign.Reason)
	}
	stop()
	tc.workers = nil
	if tc.results(id) != 0 {
		t.Fatal("the worker has used the store of the cluster")
	}
	if _, err := tc.store.Get(t.Context(), id+"/index.html"); err == nil {
		t.Error("there is a report")
	}
	_, err := recordtest.Want(t.Context(), tc.board, tc.store, id, record.WantRun)
	must(t, err)
	tc.work(id)
	tc.awaitDone(id, 4)
	if n := tc.results(id); n != 4 {
		t.Errorf("%d results", n)
	}
}

// TestFinishAfterForgedOutcomes publishes outcomes of items that nobody has restored, as the credentials of a worker permit.
func TestFinishAfterForgedOutcomes(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	tc.lead()
	id := tc.submit("forged", 0)
	tc.awaitPhase(id, record.PhasePreflight)
	w, err := tc.attach(t.Context(), id)
	must(t, err)
	for seen := map[string]bool{}; len(seen) < 5; { // the preflight and 4 items
		leases, err := w.Lease(t.Context(), 5, 200*time.Millisecond)
		must(t, err)
		for _, l := range leases {
			seen[l.ID()] = true
			if l.ID() == record.IDPreflight {
				must(t, tc.restore(t.Context(), l, id))
				continue
			}
			data, err := json.Marshal(item.Event{Outcome: item.OutcomeDone})
			must(t, err)
			must(t, w.PublishResult(t.Context(), l.ID(), l.Round(), data))
		}
	}
	tc.work(id)
	tc.awaitDone(id, 4)
	if n := tc.results(id); n != 4 {
		t.Errorf("%d results", n)
	}
}

// TestCancelCountsStoredResults cancels a campaign whose worker stores its results elsewhere.
func TestCancelCountsStoredResults(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 2)
	tc.lead()
	id := tc.submit("cancelled", 0)
	hang := make(chan struct{})
	n := 0
	tc.set(func(item.Item, int) error {
		if n++; n > 2 {
			<-hang
		}
		return nil
	})
	tc.workers = newStore(t)
	stop := tc.work(id)
	tc.await(id, "2 done items", func(s record.CampaignStatus) bool { return s.Status.Counts.Done == 2 })
	_, err := recordtest.Want(t.Context(), tc.board, tc.store, id, record.WantCancelNow)
	must(t, err)
	s := tc.awaitPhase(id, record.PhaseCancelled)
	if want := (record.Counts{Items: 4, Cancelled: 4}); s.Status.Counts != want {
		t.Errorf("counts %+v, want %+v", s.Status.Counts, want)
	}
	close(hang)
	stop()
}

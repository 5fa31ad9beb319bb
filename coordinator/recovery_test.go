package coordinator_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// TestLeaderRestarts stops leaders at random times: no item is lost, and no item with a result is leased again.
func TestLeaderRestarts(t *testing.T) {
	tc := newTestCluster(t, 12)
	tc.set(func(item.Item, int) error {
		time.Sleep(10 * time.Millisecond)
		return nil
	})
	id := tc.submit("dies", 2)
	tc.work(id)
	tc.work(id)
	random := rand.New(rand.NewPCG(5, 6))
	for range 8 {
		stop := tc.lead()
		time.Sleep(time.Duration(random.IntN(120)) * time.Millisecond)
		stop()
	}
	tc.lead()
	s := tc.awaitPhase(id, record.PhaseFinished)
	if want := (record.Counts{Items: 24, Done: 24}); s.Status.Counts != want {
		t.Errorf("%+v, want %+v", s.Status.Counts, want)
	}
	for item, n := range tc.started {
		if n > 1 && item != record.IDPreflight {
			t.Errorf("item %.12s was started %d times", item, n)
		}
	}
}

// loseQueue loses all of a campaign but storage.
func (tc *testCluster) loseQueue(id string) {
	tc.t.Helper()
	q, err := tc.open(tc.t.Context(), id, 3)
	must(tc.t, err)
	must(tc.t, q.Remove(tc.t.Context()))
	for _, prefix := range []string{record.KeyCampaignPrefix, record.KeyStatusPrefix} {
		must(tc.t, tc.board.Delete(tc.t.Context(), prefix+id))
	}
}

// TestLostBoardAndStreams loses everything but storage: board, work and outcomes.
func TestLostBoardAndStreams(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 6)
	hold := tc.gated()
	id := tc.submit("ashes", 0)
	stop := tc.lead()
	idle := tc.work(id)
	permit(hold, 7)
	tc.await(id, "some items done", func(s record.CampaignStatus) bool { return s.Status.Counts.Done >= 5 })
	stop()
	tc.loseQueue(id)
	had := tc.results(id)
	tc.lead()
	permit(hold, 90)
	s := tc.awaitPhase(id, record.PhaseFinished)
	idle()
	if want := (record.Counts{Items: 12, Done: 12}); s.Status.Counts != want {
		t.Errorf("%+v, want %+v; %d were done before", s.Status.Counts, want, had)
	}
}

// TestAttackBudgetAfterLoss loses everything but storage before a part of the ledger was stored: what the stored results cost stays spent.
func TestAttackBudgetAfterLoss(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 6)
	tc.seconds, tc.pool = 4, "spot"
	hold := tc.gated()
	id := tc.submitWith("spends", "", manifest.Budget{Seconds: 24})
	tc.output = id
	lead := func() func() {
		return tc.leadWith(func(c *coordinator.Config) { c.Prices = coordinator.Prices{"spot": 1} })
	}
	stop := lead()
	idle := tc.work(id)
	permit(hold, 5)
	tc.await(id, "some items done", func(s record.CampaignStatus) bool { return s.Status.Counts.Done == 5 })
	stop()
	permit(hold, 1) // its outcome is lost
	for tick := time.NewTicker(10 * time.Millisecond); tc.results(tc.output) < 6; <-tick.C {
	}
	tc.loseQueue(id)
	lead()
	tc.awaitReason(id, "24 of 24 device-seconds")
	s := tc.await(id, "its use", func(s record.CampaignStatus) bool { return s.Status.Seconds == 24 })
	if u := s.Status.Uses; len(u) != 1 || u[0].Pool != "spot" || s.Status.Counts.Done != 6 {
		t.Errorf("%+v", s.Status)
	}
	permit(hold, 90)
	idle()
}

// TestItemThatKillsWorkersIsDead expects the coordinator to sweep an item that no worker settles.
func TestItemThatKillsWorkersIsDead(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for leases for half a minute: make test-all")
	}
	t.Parallel()
	tc := newTestCluster(t, 1)
	spec := tc.spec("killer")
	spec.Attempts = 1
	tc.set(func(it item.Item, _ int) error {
		if it.Task == "hdr" {
			return errHang
		}
		return nil
	})
	c, _, err := recordtest.Submit(t.Context(), tc.board, tc.store, spec, board.Order{}, time.Now())
	must(t, err)
	tc.lead()
	tc.work(c.ID)
	s := tc.awaitPhase(c.ID, record.PhaseFinished)
	if want := (record.Counts{Items: 2, Done: 1, Dead: 1}); s.Status.Counts != want {
		t.Errorf("%+v, want %+v", s.Status.Counts, want)
	}
}

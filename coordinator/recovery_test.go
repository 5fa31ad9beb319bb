package coordinator_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"ddiff/coordinator/board"
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
	s := tc.awaitPhase(id, manifest.PhaseFinished)
	if want := (manifest.Counts{Items: 24, Done: 24}); s.Status.Counts != want {
		t.Errorf("%+v, want %+v", s.Status.Counts, want)
	}
	for item, n := range tc.started {
		if n > 1 && item != manifest.IDPreflight {
			t.Errorf("item %.12s was started %d times", item, n)
		}
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
	tc.await(id, "some items done", func(s manifest.CampaignStatus) bool { return s.Status.Counts.Done >= 5 })
	stop()
	q, err := tc.open(t.Context(), id, 3)
	must(t, err)
	must(t, q.Remove(t.Context()))
	must(t, tc.board.Delete(t.Context(), manifest.KeyCampaignPrefix+id))
	must(t, tc.board.Delete(t.Context(), manifest.KeyStatusPrefix+id))
	had := tc.results(id)
	tc.lead()
	permit(hold, 90)
	s := tc.awaitPhase(id, manifest.PhaseFinished)
	idle()
	if want := (manifest.Counts{Items: 12, Done: 12}); s.Status.Counts != want {
		t.Errorf("%+v, want %+v; %d were done before", s.Status.Counts, want, had)
	}
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
	c, _, err := board.Submit(t.Context(), tc.board, spec, board.Order{}, time.Now())
	must(t, err)
	tc.lead()
	tc.work(c.ID)
	s := tc.awaitPhase(c.ID, manifest.PhaseFinished)
	if want := (manifest.Counts{Items: 2, Done: 1, Dead: 1}); s.Status.Counts != want {
		t.Errorf("%+v, want %+v", s.Status.Counts, want)
	}
}

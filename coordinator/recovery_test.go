package coordinator_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/manifest"
	"ddiff/queue"
)

// Coordinators die again and again, at any point; what has a result is not handed out again,
// and nothing is missed.
func TestCoordinatorDiesAtAnyPoint(t *testing.T) {
	y := newYard(t, 30)
	y.set(func(manifest.Item, int) error {
		time.Sleep(5 * time.Millisecond)
		return nil
	})
	id := y.submit("dies", 2)
	y.work(id)
	y.work(id)
	random := rand.New(rand.NewPCG(5, 6))
	for range 12 {
		stop := y.lead()
		time.Sleep(time.Duration(random.IntN(120)) * time.Millisecond)
		stop()
	}
	y.lead()
	s := y.awaitPhase(id, manifest.PhaseFinished)
	if want := (manifest.Counts{Items: 60, Done: 60}); s.Status.Counts != want {
		t.Errorf("%+v, want %+v", s.Status.Counts, want)
	}
	for item, n := range y.begun {
		if n > 1 && item != manifest.IDPreflight {
			t.Errorf("item %.12s was begun %d times", item, n)
		}
	}
}

// Two coordinators lead for a while, as after a long pause of one: no item is missed, and the
// counts are right.
func TestTwoLeadersDoNoHarm(t *testing.T) {
	y := newYard(t, 20)
	id := y.submit("two", 1)
	y.lead()
	y.lead()
	y.work(id)
	s := y.awaitPhase(id, manifest.PhaseFinished)
	if s.Status.Counts.Done != 40 || y.results(id) != 40 {
		t.Errorf("%+v, %d results", s.Status.Counts, y.results(id))
	}
}

// The whole queue of the campaign goes while it runs.
func TestLostWorkIsPublishedAgain(t *testing.T) {
	y := newYard(t, 20)
	hold := make(chan struct{}, 100)
	y.set(func(manifest.Item, int) error {
		<-hold
		return nil
	})
	id := y.submit("lost", 0)
	y.lead()
	stop := y.work(id)
	for range 7 {
		hold <- struct{}{}
	}
	y.await(id, "some items done", func(s coordinator.CampaignStatus) bool { return s.Status.Counts.Done >= 5 })
	q, err := y.open(t.Context(), id, 3)
	must(t, err)
	must(t, q.Drop(t.Context()))
	for range 90 {
		hold <- struct{}{}
	}
	s := y.awaitPhase(id, manifest.PhaseFinished)
	stop()
	if want := (manifest.Counts{Items: 40, Done: 40}); s.Status.Counts != want {
		t.Errorf("%+v, want %+v", s.Status.Counts, want)
	}
}

// Everything but storage is lost: board, work, outcomes.
func TestEverythingButStorageIsLost(t *testing.T) {
	y := newYard(t, 15)
	hold := make(chan struct{}, 100)
	y.set(func(manifest.Item, int) error {
		<-hold
		return nil
	})
	id := y.submit("ashes", 0)
	stop := y.lead()
	idle := y.work(id)
	for range 10 {
		hold <- struct{}{}
	}
	y.await(id, "some items done", func(s coordinator.CampaignStatus) bool { return s.Status.Counts.Done >= 8 })
	stop()
	q, err := y.open(t.Context(), id, 3)
	must(t, err)
	must(t, q.Remove(t.Context()))
	must(t, y.board.Delete(t.Context(), manifest.KeyCampaignPrefix+id))
	must(t, y.board.Delete(t.Context(), manifest.KeyStatusPrefix+id))
	had := y.results(id)
	y.lead()
	for range 90 {
		hold <- struct{}{}
	}
	s := y.awaitPhase(id, manifest.PhaseFinished)
	idle()
	if want := (manifest.Counts{Items: 30, Done: 30}); s.Status.Counts != want {
		t.Errorf("%+v, want %+v; %d were done before", s.Status.Counts, want, had)
	}
}

// Items that end every worker are buried by the coordinator.
func TestItemsThatEndTheirWorkersAreDead(t *testing.T) {
	y := newYard(t, 1)
	spec := y.spec("killer")
	spec.Attempts = 1
	y.set(func(it manifest.Item, _ int) error {
		if it.Task == "hdr" {
			return errHang
		}
		return nil
	})
	c, _, err := coordinator.Submit(t.Context(), y.board, spec, coordinator.Order{}, time.Now())
	must(t, err)
	y.lead()
	y.work(c.ID)
	s := y.awaitPhase(c.ID, manifest.PhaseFinished)
	if want := (manifest.Counts{Items: 2, Done: 1, Dead: 1}); s.Status.Counts != want {
		t.Errorf("%+v, want %+v", s.Status.Counts, want)
	}
	if letters := y.letters(c.ID); len(letters) != 1 {
		t.Errorf("%d dead letters, want 1", len(letters))
	}
}

func (y *yard) letters(id string) []queue.DeadLetter {
	y.t.Helper()
	q, err := y.open(y.t.Context(), id, 3)
	must(y.t, err)
	var all []queue.DeadLetter
	for letter, err := range q.DeadLetters(y.t.Context()) {
		must(y.t, err)
		all = append(all, letter)
	}
	return all
}

func TestCursorIsKept(t *testing.T) {
	y := newYard(t, 3)
	id := y.submit("cursor", 0)
	y.lead()
	y.work(id)
	s := y.awaitPhase(id, manifest.PhaseFinished)
	if c := s.Campaign; c.Shards != 1 || c.Items != 6 {
		t.Errorf("cursor is at window %d, item %d", c.Shards, c.Items)
	}
	keys := []string{}
	for info, err := range y.store.List(context.Background(), "campaigns/"+id+"/") {
		must(t, err)
		keys = append(keys, info.Key)
	}
	if !slices.Contains(keys, "campaigns/"+id+"/campaign.json") || !slices.Contains(keys, "campaigns/"+id+"/shards/00000000.jsonl.gz") {
		t.Errorf("storage has %v", keys)
	}
}

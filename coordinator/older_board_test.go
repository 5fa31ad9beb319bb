package coordinator_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"ddiff/coordinator"
	"ddiff/coordinator/archive"
	"ddiff/coordinator/board"
	"ddiff/coordinator/gc"
	"ddiff/coordinator/index"
	"ddiff/manifest"
	"ddiff/queue"
)

// boardCopy has the records of campaigns, as a backup of NATS.
type boardCopy map[string][]byte

// backUpBoard copies the records of the board with a prefix.
func (tc *testCluster) backUpBoard() boardCopy {
	tc.t.Helper()
	records, err := board.Records(tc.t.Context(), tc.board, manifest.KeyCampaignPrefix)
	must(tc.t, err)
	all := boardCopy{}
	for key, r := range records {
		all[key] = r.Data
	}
	return all
}

// restoreBoard gives the board the records of a backup only.
func (tc *testCluster) restoreBoard(backup boardCopy) {
	tc.t.Helper()
	keys, err := tc.board.Keys(tc.t.Context(), manifest.KeyCampaignPrefix)
	must(tc.t, err)
	for _, key := range keys {
		if backup[key] == nil {
			must(tc.t, tc.board.Delete(tc.t.Context(), key))
		}
	}
	for key, data := range backup {
		must(tc.t, tc.board.Put(tc.t.Context(), key, data))
	}
}

// TestAttackOlderBoard restores an older board after campaigns were cancelled, paused, resumed, deleted and finished: with a new leader, and
// with one that leads on. What people have decided counts, and nothing is lost.
func TestAttackOlderBoard(t *testing.T) {
	t.Parallel()
	for name, leadsOn := range map[string]bool{"new leader": false, "same leader": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc := newTestCluster(t, 3)
			hour := func(c *coordinator.Config) { c.ArchiveAfter = time.Hour }
			stop := tc.leadArchiving(time.Hour, hour)
			ids := map[string]string{}
			for _, verb := range []string{"cancel", "pause", "resume", "delete", "finish", "budget", "again"} {
				ids[verb] = tc.submit(verb, 0)
				tc.awaitPhase(ids[verb], manifest.PhasePreflight)
			}
			tc.decide(ids["resume"], manifest.WantCancel)
			tc.awaitPhase(ids["resume"], manifest.PhaseCancelled)
			tc.decide(ids["again"], manifest.WantPause)
			tc.decide(ids["again"], manifest.WantRun)
			tc.decide(ids["again"], manifest.WantPause)
			backup := tc.backUpBoard()
			late := tc.submit("late", 0) // not in the backup
			tc.awaitPhase(late, manifest.PhasePreflight)

			tc.decide(ids["cancel"], manifest.WantCancel)
			tc.decide(ids["pause"], manifest.WantPause)
			tc.decide(ids["resume"], manifest.WantRun)
			tc.decide(ids["delete"], manifest.WantCancel)
			tc.decide(ids["again"], manifest.WantCancel)
			for _, verb := range []string{"cancel", "delete", "again"} {
				tc.awaitPhase(ids[verb], manifest.PhaseCancelled)
			}
			tc.awaitPhase(ids["pause"], manifest.PhasePaused)
			_, err := (&gc.Cleaner{Store: tc.store, Board: tc.board}).Delete(t.Context(), ids["delete"], true)
			must(t, err)
			_, err = (&gc.Cleaner{Store: tc.store, Board: tc.board}).Delete(t.Context(), ids["again"], true)
			must(t, err)
			tc.submit("again", 0)
			tc.awaitPhase(ids["again"], manifest.PhasePreflight)
			c, err := board.SetBudget(t.Context(), tc.board, ids["budget"], manifest.Budget{Seconds: 77})
			must(t, err)
			_, err = board.AwaitStored(t.Context(), tc.board, c)
			must(t, err)
			idle := tc.work(ids["finish"])
			finished := tc.awaitPhase(ids["finish"], manifest.PhaseFinished)
			idle()
			must(t, archive.Archive(t.Context(), tc.board, ids["finish"]))

			if !leadsOn {
				stop()
			}
			tc.restoreBoard(backup)
			if !leadsOn {
				stop = tc.leadArchiving(time.Hour, hour)
			}
			tc.awaitPhase(ids["cancel"], manifest.PhaseCancelled)
			tc.awaitPhase(ids["pause"], manifest.PhasePaused)
			tc.await(ids["budget"], "its budget", func(s manifest.CampaignStatus) bool { return s.Campaign.Spec.Budget.Seconds == 77 })
			tc.await(ids["again"], "the second submission", func(s manifest.CampaignStatus) bool {
				return s.Campaign.Phase == manifest.PhasePreflight && s.Campaign.Wanted == manifest.WantRun
			})
			tc.await(ids["resume"], "its preflight", func(s manifest.CampaignStatus) bool { return s.Campaign.Phase == manifest.PhasePreflight })
			if s := tc.awaitPhase(ids["finish"], manifest.PhaseFinished); s.Status.Counts != finished.Status.Counts {
				t.Errorf("the counts of a finished campaign are %+v, were %+v", s.Status.Counts, finished.Status.Counts)
			}
			tc.await(late, "the board again", func(manifest.CampaignStatus) bool { return true })
			tc.awaitArchived(ids["delete"]) // it is gone
			archived, err := archive.List(t.Context(), tc.store)
			must(t, err)
			if slices.ContainsFunc(archived, func(s manifest.CampaignStatus) bool { return s.Campaign.ID == ids["delete"] }) {
				t.Error("a deleted campaign is back")
			}
			if err := archive.Recall(t.Context(), tc.board, ids["delete"]); !errors.Is(err, queue.ErrNoRecord) {
				t.Errorf("a deleted campaign: %v", err)
			}
			tc.submit("delete", 0) // another submission with the same id
			tc.awaitPhase(ids["delete"], manifest.PhasePreflight)
			stop()
		})
	}
}

// decide sends a wish and waits until it is stored.
func (tc *testCluster) decide(id string, w manifest.Wanted) {
	tc.t.Helper()
	c, err := board.Want(tc.t.Context(), tc.board, id, w)
	must(tc.t, err)
	_, err = board.AwaitStored(tc.t.Context(), tc.board, c)
	must(tc.t, err)
}

// TestTombstone: a deletion is remembered by submission.
func TestTombstone(t *testing.T) {
	t.Parallel()
	x := index.New(newStore(t))
	c := &manifest.Campaign{ID: "a-0123", Submitted: time.Unix(1, 2)}
	again := &manifest.Campaign{ID: "a-0123", Submitted: time.Unix(1, 3)}
	must(t, x.Bury(t.Context(), c))
	for c, want := range map[*manifest.Campaign]bool{c: true, again: false} {
		if got, err := x.Buried(t.Context(), c); err != nil || got != want {
			t.Errorf("submitted at %v: %t, %v", c.Submitted, got, err)
		}
	}
	if newest, err := x.Newest(t.Context(), c.ID); err != nil || newest.State != "" {
		t.Errorf("the entry of a deleted campaign: %+v, %v", newest, err)
	}
	if !index.IsTombstone(index.Tombstone(c)) || index.IsTombstone(index.Entry{ID: "deleted", State: index.Open}.Key()) {
		t.Error("tombstones and entries")
	}
}

package coordinator_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/coordinator"
	"ddiff/internal/coordinator/archive"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/gc"
	"ddiff/internal/coordinator/index"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/storage"
)

// boardCopy has the records of campaigns, as a backup of NATS.
type boardCopy map[string][]byte

// backUpBoard copies the records of the board with a prefix.
func (tc *testCluster) backUpBoard() boardCopy {
	tc.t.Helper()
	records, err := board.Records(tc.t.Context(), tc.board, record.KeyCampaignPrefix)
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
	keys, err := tc.board.Keys(tc.t.Context(), record.KeyCampaignPrefix)
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
				tc.awaitPhase(ids[verb], record.PhasePreflight)
			}
			tc.decide(ids["resume"], record.WantCancel)
			tc.awaitPhase(ids["resume"], record.PhaseCancelled)
			tc.decide(ids["again"], record.WantPause)
			tc.decide(ids["again"], record.WantRun)
			tc.decide(ids["again"], record.WantPause)
			backup := tc.backUpBoard()
			var submitted api.Submitted // not in the backup
			must(t, tc.do(board.VerbSubmit, "", board.Submission{Spec: tc.spec("late")}, &submitted))
			late := submitted.ID
			tc.awaitPhase(late, record.PhasePreflight)

			tc.decide(ids["cancel"], record.WantCancel)
			tc.decide(ids["pause"], record.WantPause)
			tc.decide(ids["resume"], record.WantRun)
			tc.decide(ids["delete"], record.WantCancel)
			tc.decide(ids["again"], record.WantCancel)
			for _, verb := range []string{"cancel", "delete", "again"} {
				tc.awaitPhase(ids[verb], record.PhaseCancelled)
			}
			tc.awaitPhase(ids["pause"], record.PhasePaused)
			_, err := (&gc.Cleaner{Store: tc.store, Board: tc.board, Archive: tc.archiveContext}).Delete(t.Context(), ids["delete"], true)
			must(t, err)
			_, err = (&gc.Cleaner{Store: tc.store, Board: tc.board, Archive: tc.archiveContext}).Delete(t.Context(), ids["again"], true)
			must(t, err)
			tc.submit("again", 0)
			tc.awaitPhase(ids["again"], record.PhasePreflight)
			must(t, tc.do(board.VerbChange, ids["budget"], api.Change{Budget: &manifest.Budget{Seconds: 77}}, nil))
			idle := tc.work(ids["finish"])
			finished := tc.awaitPhase(ids["finish"], record.PhaseFinished)
			idle()
			must(t, tc.archive(ids["finish"]))

			if !leadsOn {
				stop()
			}
			tc.restoreBoard(backup)
			if !leadsOn {
				stop = tc.leadArchiving(time.Hour, hour)
			}
			tc.awaitPhase(ids["cancel"], record.PhaseCancelled)
			tc.awaitPhase(ids["pause"], record.PhasePaused)
			tc.await(ids["budget"], "its budget", func(s record.CampaignStatus) bool { return s.Campaign.Spec.Budget.Seconds == 77 })
			tc.await(ids["again"], "the second submission", func(s record.CampaignStatus) bool {
				return s.Campaign.Phase == record.PhasePreflight && s.Campaign.Wanted == record.WantRun
			})
			tc.await(ids["resume"], "its preflight", func(s record.CampaignStatus) bool { return s.Campaign.Phase == record.PhasePreflight })
			if s := tc.awaitPhase(ids["finish"], record.PhaseFinished); s.Status.Counts != finished.Status.Counts {
				t.Errorf("the counts of a finished campaign are %+v, were %+v", s.Status.Counts, finished.Status.Counts)
			}
			tc.await(late, "the board again", func(record.CampaignStatus) bool { return true })
			tc.awaitArchived(ids["delete"]) // it is gone
			archived, err := archive.List(t.Context(), tc.store)
			must(t, err)
			if slices.ContainsFunc(archived, func(s record.CampaignStatus) bool { return s.Campaign.ID == ids["delete"] }) {
				t.Error("a deleted campaign is back")
			}
			if err := tc.recall(ids["delete"]); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("a deleted campaign: %v", err)
			}
			tc.submit("delete", 0) // another submission with the same id
			tc.awaitPhase(ids["delete"], record.PhasePreflight)
			stop()
		})
	}
}

// TestAttackVerbOnOlderBoard: a verb is acknowledged on a board that a backup has restored and that shows its state already, while the store says otherwise.
// It is never undone.
func TestAttackVerbOnOlderBoard(t *testing.T) {
	t.Parallel()
	for name, leadsOn := range map[string]bool{"new leader": false, "same leader": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc := newTestCluster(t, 1)
			stop := tc.lead()
			id := tc.submit("undone", 0)
			tc.awaitPhase(id, record.PhasePreflight)
			must(t, tc.do("pause", id, nil, nil))
			tc.awaitPhase(id, record.PhasePaused)
			backup := tc.backUpBoard()
			must(t, tc.do("run", id, nil, nil))
			tc.awaitPhase(id, record.PhasePreflight)
			if !leadsOn {
				stop()
			}
			tc.restoreBoard(backup)
			if !leadsOn {
				tc.lead()
			}
			must(t, tc.do("pause", id, nil, nil))
			stored, err := board.Load(t.Context(), tc.store, id)
			must(t, err)
			if stored.Wanted != record.WantPause {
				t.Errorf("the store has %s", stored.Wanted)
			}
			tc.await(id, "the board", func(s record.CampaignStatus) bool {
				return s.Campaign.Number >= stored.Number && s.Status.Phase == record.PhasePaused
			})
			if now, err := board.Load(t.Context(), tc.store, id); err != nil || now.Wanted != record.WantPause {
				t.Errorf("the pause was undone: %+v, %v", now, err)
			}
		})
	}
}

// decide sends a wish to the leader.
func (tc *testCluster) decide(id string, w record.Wanted) {
	tc.t.Helper()
	must(tc.t, tc.do(string(w), id, nil, nil))
}

// TestTombstone: a deletion is remembered by submission.
func TestTombstone(t *testing.T) {
	t.Parallel()
	x := index.New(newStore(t))
	c := &record.Campaign{ID: "a-0123", Submitted: time.Unix(1, 2)}
	again := &record.Campaign{ID: "a-0123", Submitted: time.Unix(1, 3)}
	must(t, x.Bury(t.Context(), c))
	for c, want := range map[*record.Campaign]bool{c: true, again: false} {
		if got, err := x.Buried(t.Context(), c); err != nil || got != want {
			t.Errorf("submitted at %v: %t, %v", c.Submitted, got, err)
		}
	}
	if newest, err := x.Newest(t.Context(), c.ID); err != nil || newest.State != "" {
		t.Errorf("the entry of a deleted campaign: %+v, %v", newest, err)
	}
	if !index.IsTombstone(c.Tombstone()) || index.IsTombstone(index.Entry{ID: "deleted", State: index.Open}.Key()) {
		t.Error("tombstones and entries")
	}
}

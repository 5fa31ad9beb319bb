package archive

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator/board"
	"ddiff/manifest"
	"ddiff/storage"
)

// forgetful is a store that does not return the next objects.
type forgetful struct {
	storage.Store
	lies int
}

func (s *forgetful) Get(ctx context.Context, key string) ([]byte, error) {
	if s.lies--; s.lies >= 0 {
		return nil, storage.ErrNotFound
	}
	return s.Store.Get(ctx, key)
}

// TestAttackForgetfulStore: one false answer that the store has no record lets no older record of the board count. A store that has lost its
// record says so twice, and the board counts.
func TestAttackForgetfulStore(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for _, lost := range []bool{false, true} {
		var log strings.Builder
		a, r := archiverOf(t, &now, &log)
		store := &forgetful{a.cfg.Store, 1}
		a.cfg.Store = store
		cancelled := *r.rec
		cancelled.Wanted, cancelled.Stored = manifest.WantCancel, 2
		if must(t, board.Store(t.Context(), store, &cancelled)); lost {
			store.lies = 2
		}
		older, err := board.Update(t.Context(), a.cfg.Board, r.id, func(c *manifest.Campaign) error {
			c.Stored = 1
			return nil
		})
		must(t, err)
		if _, _, err := a.Reconcile(t.Context(), older); !errors.Is(err, errMissing) {
			t.Errorf("lost %t: a first look: %v", lost, err)
		}
		got, _, err := a.Reconcile(t.Context(), older)
		must(t, err)
		if want := map[bool]manifest.Wanted{false: manifest.WantCancel, true: manifest.WantRun}[lost]; got.Wanted != want {
			t.Errorf("lost %t: the campaign is to %s, want %s", lost, got.Wanted, want)
		}
	}
}

// TestAttackLateCopy: S3 executes a write of the record after a newer one. The next look stores the newer record again, so that a later backup of the
// board undoes no verb.
func TestAttackLateCopy(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	var log strings.Builder
	a, r := archiverOf(t, &now, &log)
	copies := map[int]*manifest.Campaign{}
	for revision, wanted := range map[int]manifest.Wanted{1: manifest.WantRun, 2: manifest.WantCancel} {
		c := *r.rec
		c.Stored, c.Wanted = revision, wanted
		copies[revision] = &c
	}
	for _, revision := range []int{2, 1} {
		must(t, board.Store(t.Context(), a.cfg.Store, copies[revision]))
	}
	if got, _, err := a.Reconcile(t.Context(), copies[2]); err != nil || got.Wanted != manifest.WantCancel {
		t.Fatalf("%v, %v", got, err)
	}
	_, err := board.Update(t.Context(), a.cfg.Board, r.id, func(c *manifest.Campaign) error {
		c.Stored = 1
		return nil
	})
	must(t, err)
	backup, err := board.Read(t.Context(), a.cfg.Board, r.id)
	must(t, err)
	got, _, err := a.Reconcile(t.Context(), backup)
	must(t, err)
	if got.Wanted != manifest.WantCancel || got.Stored != 2 {
		t.Errorf("the campaign is to %s, its record is number %d", got.Wanted, got.Stored)
	}
}

// TestWithRequests: a command that a user sends after a crash between the two writes of a change is kept, and executed once; a backup of the board,
// which users have not written since, undoes nothing.
func TestWithRequests(t *testing.T) {
	t.Parallel()
	stored := &manifest.Campaign{
		Wanted: manifest.WantPause, Asked: 2, Stored: 5, Phase: manifest.PhaseQueued,
		Answered: []manifest.Answer{{ID: "answered"}},
	}
	backup := &manifest.Campaign{Wanted: manifest.WantRun, Asked: 1, Stored: 3, Commands: []manifest.Command{{ID: "answered"}}}
	if got := withRequests(stored, backup); got.Wanted != manifest.WantPause || len(got.Commands) != 0 || got.Asked != 2 {
		t.Errorf("a backup: %+v", got)
	}
	behind := &manifest.Campaign{
		Wanted: manifest.WantCancel, Asked: 3, Stored: 4, Phase: manifest.PhaseRunning,
		Commands: []manifest.Command{{ID: "answered"}, {ID: "new"}},
	}
	got := withRequests(stored, behind)
	if got.Wanted != manifest.WantCancel || len(got.Commands) != 1 || got.Commands[0].ID != "new" || got.Phase != manifest.PhaseQueued || got.Stored != 5 || got.Asked != 3 {
		t.Errorf("a board that a crash has left behind: %+v", got)
	}
}

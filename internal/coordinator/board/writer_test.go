package board_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/storage"
)

// faulty is a store that fails at the n-th create of a state, before it or after it.
type faulty struct {
	storage.Store
	mu    sync.Mutex
	calls int
	every int
	after bool
}

var errFault = errors.New("injected fault")

// Create implements storage.Store.
func (s *faulty) Create(ctx context.Context, key string, data []byte) error {
	s.mu.Lock()
	s.calls++
	fault := strings.Contains(key, "/state/") && s.calls%s.every == 0
	s.mu.Unlock()
	if fault && !s.after {
		return errFault
	}
	err := s.Store.Create(ctx, key, data)
	if fault && err == nil {
		err = errFault
	}
	return err
}

// TestAttackSuspendedLeader: two leaders change a record at the same time, with faults at their writes, and each continues with what it knew before. No
// decision that was acknowledged is overwritten, and each state of the store follows from the one before.
func TestAttackSuspendedLeader(t *testing.T) {
	t.Parallel()
	_, _, b := boardtest.Start(t)
	for every := 2; every <= 4; every++ {
		for _, after := range []bool{false, true} {
			dir, err := storage.NewDir(t.TempDir())
			must(t, err)
			spec, err := manifest.Parse("c", fmt.Appendf(nil, "name: c%d%t\ndataset: {path: /photos}\ntasks: [denoise]\n", every, after), "/")
			must(t, err)
			made, _, err := recordtest.Submit(t.Context(), b, dir, spec, board.Order{}, time.Now())
			must(t, err)
			var group sync.WaitGroup
			var mu sync.Mutex
			acknowledged := map[string]bool{}
			for leader := range 2 {
				writer := board.NewWriter(b, &faulty{Store: dir, every: every + leader, after: after})
				before := made // each change begins with the oldest record: the leader was suspended
				group.Go(func() {
					for i := range 12 {
						word := fmt.Sprintf("<%d.%d>", leader, i)
						_, err := writer.Change(t.Context(), made.ID, before, func(c *record.Campaign) error {
							c.Reason += word
							return nil
						})
						if err == nil {
							mu.Lock()
							acknowledged[word] = true
							mu.Unlock()
						} else if !errors.Is(err, errFault) {
							t.Error(err)
						}
					}
				})
			}
			group.Wait()
			stored, err := board.Load(t.Context(), dir, made.ID)
			must(t, err)
			for word := range acknowledged {
				if strings.Count(stored.Reason, word) != 1 {
					t.Errorf("every %d, after %t: %s is there %d times in %s", every, after, word, strings.Count(stored.Reason, word), stored.Reason)
				}
			}
			states := 0
			for _, err := range dir.List(t.Context(), "campaigns/"+made.ID+"/state/") {
				must(t, err)
				states++
			}
			if states != stored.Number || len(acknowledged) == 0 {
				t.Errorf("%d states, the newest has the number %d", states, stored.Number)
			}
			// The board has it after a repair, whatever it had before.
			must(t, b.Delete(t.Context(), record.KeyCampaignPrefix+made.ID))
			if c, err := board.NewWriter(b, dir).Repair(t.Context(), made.ID); err != nil || c.Reason != stored.Reason {
				t.Errorf("repaired: %+v, %v", c, err)
			}
		}
	}
}

// TestStaleAnswers: a leader that was suspended neither acknowledges a decision that another one has replaced, nor refuses one that is possible again.
func TestStaleAnswers(t *testing.T) {
	t.Parallel()
	_, _, b := boardtest.Start(t)
	dir, err := storage.NewDir(t.TempDir())
	must(t, err)
	spec, err := manifest.Parse("c", []byte("name: c\ndataset: {path: /photos}\ntasks: [denoise]\n"), "/")
	must(t, err)
	made, _, err := recordtest.Submit(t.Context(), b, dir, spec, board.Order{}, time.Now())
	must(t, err)
	suspended := board.NewWriter(b, dir)
	paused, err := suspended.Change(t.Context(), made.ID, nil, board.Wants(record.WantPause))
	must(t, err)
	_, err = recordtest.Want(t.Context(), b, dir, made.ID, record.WantRun)
	must(t, err)
	again, err := suspended.Change(t.Context(), made.ID, paused, board.Wants(record.WantPause))
	if err != nil || again.Number != 3 || again.Wanted != record.WantPause {
		t.Errorf("a pause that is not in force any more: %+v, %v", again, err)
	}
	finish := func(p record.Phase) {
		_, err := recordtest.Update(t.Context(), b, dir, made.ID, func(c *record.Campaign) error { c.Phase = p; return nil })
		must(t, err)
	}
	finish(record.PhaseFinished)
	finished, err := suspended.Newest(t.Context(), made.ID)
	must(t, err)
	finish(record.PhaseRunning)
	if _, err := suspended.Change(t.Context(), made.ID, finished, board.Wants(record.WantCancel)); err != nil {
		t.Errorf("a cancellation of a campaign that runs again: %v", err)
	}
}

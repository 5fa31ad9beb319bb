package coordinator_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/record"
	"ddiff/restore/item"
)

func (tc *testCluster) want(id string, w record.Wanted) {
	tc.t.Helper()
	for range 2 { // Want is idempotent
		_, err := recordtest.Want(tc.t.Context(), tc.board, tc.store, id, w)
		must(tc.t, err)
	}
}

// command is a command to a campaign with its key, which may be empty.
type command struct {
	ID, Verb string
	Outcomes []item.Outcome
	Where    string
	Items    []string
	Path     string
}

// command sends a command until a leader answers.
func (tc *testCluster) command(id string, c command) (a api.Appended, err error) {
	ctx, cancel := context.WithTimeout(recordtest.Administrator(tc.t.Context()), patience)
	defer cancel()
	v := board.Verb{Key: cmp.Or(c.ID, board.NewKey()), Kind: c.Verb, Campaign: id}
	for {
		err = board.Do(ctx, tc.board, v, board.Command{Outcomes: c.Outcomes, Where: c.Where, Items: c.Items, Path: c.Path}, &a)
		if !errors.Is(err, board.ErrNoLeader) && !errors.Is(err, api.ErrUnavailable) && !errors.Is(err, api.ErrStore) || ctx.Err() != nil {
			return a, err
		}
	}
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 10)
	gate := tc.gated()
	id := tc.submit("pause", 0)
	tc.lead()
	idle := tc.work(id)
	permit(gate, 1)
	tc.await(id, "one item done", func(s record.CampaignStatus) bool { return s.Status.Counts.Done == 1 })
	tc.want(id, record.WantPause)
	tc.awaitPhase(id, record.PhasePaused)
	permit(gate, 50)
	const most = 3 // the preflight, one item before the pause, and one that the worker had leased
	tc.awaitPulls(3, most)
	if n := tc.count(); n > most {
		t.Errorf("the worker started %d messages, at most %d before the pause", n, most)
	}
	tc.want(id, record.WantRun)
	if stored, err := board.Load(t.Context(), tc.store, id); err != nil || stored.Wanted != record.WantRun {
		t.Errorf("the store has %+v, %v", stored, err)
	}
	tc.awaitPhase(id, record.PhaseFinished)
	idle()
}

// Dead items are retried while others run, twice at the same time.
func TestRetryWhileRunning(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 4)
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	defer release()
	var tries atomic.Int32
	tc.set(func(it item.Item, _ int) error {
		if it.Name == "image000" && it.Task == "hdr" {
			if tries.Add(1) == 1 {
				return errDead
			}
			return nil
		}
		<-hold
		return nil
	})
	id := tc.submit("busy", 0)
	tc.lead()
	for range 16 { // also for items that are leased twice
		tc.work(id)
	}
	tc.await(id, "one dead item", func(s record.CampaignStatus) bool { return s.Status.Counts.Dead == 1 })
	var items atomic.Int32
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			a, err := tc.command(id, command{Verb: board.VerbRetry, Outcomes: []item.Outcome{item.OutcomeDead}})
			if items.Add(int32(a.Items)); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	tc.await(id, "the dead item done", func(s record.CampaignStatus) bool {
		return s.Campaign.Phase == record.PhaseRunning && s.Status.Counts.Done == 1 && s.Status.Counts.Dead == 0
	})
	release()
	tc.awaitDone(id, 8)
	if items.Load() != 1 || tries.Load() != 2 {
		t.Errorf("the commands retried %d items, the item was tried %d times", items.Load(), tries.Load())
	}
}

func TestCancelAndResume(t *testing.T) {
	t.Parallel()
	for _, w := range []record.Wanted{record.WantCancel, record.WantCancelNow} {
		t.Run(string(w), func(t *testing.T) {
			tc := newTestCluster(t, 10)
			gate := tc.gated()
			id := tc.submit("cancel", 0)
			tc.lead()
			idle := tc.work(id)
			permit(gate, 1)
			tc.await(id, "one item done", func(s record.CampaignStatus) bool {
				return s.Status.Counts.Done == 1 && s.Status.Counts.Running == 1
			})
			tc.want(id, w)
			permit(gate, 1) // ends the leased item
			s := tc.awaitPhase(id, record.PhaseCancelled)
			n := s.Status.Counts
			if n.Items != 20 || n.Done+n.Cancelled != 20 || n.Done > 2 || n.Pending+n.Running != 0 {
				t.Errorf("%+v", n)
			}
			permit(gate, 50)
			tc.want(id, record.WantRun)
			if s := tc.awaitPhase(id, record.PhaseFinished); s.Status.Counts != (record.Counts{Items: 20, Done: 20}) {
				t.Errorf("%+v", s.Status.Counts)
			}
			idle()
		})
	}
}

func TestRetryMatchingItems(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 4)
	must(t, os.WriteFile(filepath.Join(tc.dir, "later.png"), []byte("not yet an image"), 0o644))
	tc.set(func(it item.Item, _ int) error {
		switch {
		case it.Name == "image000":
			return errors.New("disk on fire")
		case it.Name == "image001" && it.Task == "hdr":
			return errDead
		}
		return nil
	})
	id := tc.submit("retry", 0)
	tc.lead()
	tc.work(id)
	s := tc.awaitPhase(id, record.PhaseFinished)
	if want := (record.Counts{Items: 10, Done: 5, Failed: 4, Dead: 1}); s.Status.Counts != want {
		t.Fatalf("%+v, want %+v", s.Status.Counts, want)
	}
	tc.set(nil)

	a, err := tc.command(id, command{ID: "one", Verb: board.VerbRetry, Outcomes: []item.Outcome{item.OutcomeFailed}, Where: "on fire"})
	must(t, err)
	if a.Items != 2 {
		t.Errorf("%d items are tried again, want 2", a.Items)
	}
	tc.await(id, "the items done", func(s record.CampaignStatus) bool {
		return s.Campaign.Phase == record.PhaseFinished && s.Status.Counts == record.Counts{Items: 10, Done: 7, Failed: 2, Dead: 1}
	})
	if again, err := tc.command(id, command{ID: "one", Verb: board.VerbRetry}); err != nil || again != a {
		t.Errorf("the same command again: %+v, %v", again, err)
	}

	a, err = tc.command(id, command{Verb: board.VerbRetry, Outcomes: []item.Outcome{item.OutcomeDead}})
	must(t, err)
	if a.Items != 1 {
		t.Errorf("%d dead items are tried again, want 1", a.Items)
	}
	tc.await(id, "the dead one done", func(s record.CampaignStatus) bool {
		return s.Campaign.Phase == record.PhaseFinished && s.Status.Counts == record.Counts{Items: 10, Done: 8, Failed: 2}
	})

	tc.image("later", 99)
	a, err = tc.command(id, command{Verb: board.VerbRetry, Outcomes: []item.Outcome{item.OutcomeFailed}})
	must(t, err)
	if a.Items != 2 {
		t.Errorf("%d items of the mended row are tried, want 2", a.Items)
	}
	tc.await(id, "all done", func(s record.CampaignStatus) bool {
		return s.Campaign.Phase == record.PhaseFinished && s.Status.Counts == record.Counts{Items: 10, Done: 10}
	})

	// The answer to thousands of items that have not failed is short: the record keeps it.
	_, err = tc.command(id, command{
		Verb: board.VerbRetry, Outcomes: []item.Outcome{item.OutcomeFailed, item.OutcomeDead},
		Items: slices.Repeat([]string{strings.Repeat("0", 64)}, 1000),
	})
	if err == nil || !strings.HasSuffix(err.Error(), " and 997 more") || len(err.Error()) > 400 {
		t.Errorf("a retry of items that are done: %.500v", err)
	}
}

// A retry of one item that could not be read publishes this item only, although other items of its window can be read now, too.
// One that mends nothing stores the window only if a reason is another one.
func TestRetryOfUnreadableItem(t *testing.T) {
	t.Parallel()
	tc := newTestCluster(t, 1)
	for _, name := range []string{"later.png", "last.png"} {
		must(t, tc.write(name, []byte("not yet an image")))
	}
	id := tc.submit("retry", 0)
	tc.lead()
	tc.work(id)
	counts := func(done, failed int) {
		t.Helper()
		tc.await(id, fmt.Sprint(done, " done"), func(s record.CampaignStatus) bool {
			return s.Campaign.Phase == record.PhaseFinished && s.Status.Counts == record.Counts{Items: 6, Done: done, Failed: failed}
		})
	}
	counts(2, 4)
	w := tc.windows(id)[0]
	retry := command{Verb: board.VerbRetry, Outcomes: []item.Outcome{item.OutcomeFailed, item.OutcomeDead}}
	retryAll := func() *shard.Window {
		t.Helper()
		if a, err := tc.command(id, retry); err != nil || a.Items != 0 {
			t.Errorf("%d items are tried again, want none; %v", a.Items, err)
		}
		return tc.windows(id)[0]
	}
	if got := retryAll(); !reflect.DeepEqual(got, w) {
		t.Error("a retry that mends nothing has stored the window again")
	}
	must(t, os.Truncate(filepath.Join(tc.dir, "last.png"), 0))
	if got := retryAll(); reflect.DeepEqual(got, w) {
		t.Error("the stored window does not have the new reason")
	}
	tc.image("later", 98)
	tc.image("last", 99)
	for i, f := range w.Failed {
		retry.Items = []string{f.Item.ID}
		if a, err := tc.command(id, retry); err != nil || a.Items != 1 {
			t.Errorf("%s, %s: %d items are tried again, want 1; %v", f.Item.Name, f.Item.Task, a.Items, err)
		}
		counts(3+i, 3-i)
	}
}

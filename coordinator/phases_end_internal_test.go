package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/record"
	"ddiff/restore/item"
)

// onRecord changes the record as a verb or another leader does, and also what was submitted.
func onRecord(t *testing.T, r *runner, change func(c *record.Campaign)) *record.Campaign {
	t.Helper()
	c, err := recordtest.Update(t.Context(), r.s.cfg.Board, r.s.cfg.Store, r.id, func(c *record.Campaign) error {
		change(c)
		return nil
	})
	must(t, err)
	submitted := *c
	if change(&submitted); reflect.DeepEqual(c.Spec, submitted.Spec) {
		return c
	}
	data, err := json.Marshal(submitted)
	must(t, err)
	must(t, r.s.cfg.Store.Put(t.Context(), board.StoredKey(r.id), data))
	r.writer.Forget(r.id)
	c, err = r.writer.Repair(t.Context(), r.id)
	must(t, err)
	return c
}

// A campaign ends unless users have changed what they want, or another leader its phase.
func TestEndOfCampaign(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	cancels := func(c *record.Campaign) { c.Wanted = record.WantCancel }
	for name, tt := range map[string]struct {
		phase    record.Phase
		before   func(c *record.Campaign) // that the runner knows
		meantime func(c *record.Campaign) // that it does not know
		want     record.Phase
		ends     bool
		changed  bool // by another leader
		asked    bool // a command waits
	}{
		"finished":                 {phase: record.PhaseFinished, want: record.PhaseFinished, ends: true},
		"cancelled":                {phase: record.PhaseCancelled, before: cancels, want: record.PhaseCancelled, ends: true},
		"finished, but cancelled":  {phase: record.PhaseFinished, meantime: cancels, want: record.PhaseRunning},
		"finished, but a command":  {phase: record.PhaseFinished, asked: true, want: record.PhaseRunning},
		"cancelled, but resumed":   {phase: record.PhaseCancelled, before: cancels, meantime: func(c *record.Campaign) { c.Wanted = record.WantRun }, want: record.PhaseRunning},
		"finished by another lead": {phase: record.PhaseFinished, meantime: func(c *record.Campaign) { c.Phase = record.PhaseCancelled }, want: record.PhaseCancelled, changed: true},
	} {
		r := runningRunner(t, &now, &strings.Builder{})
		if tt.before != nil {
			r.rec = onRecord(t, r, tt.before)
		}
		if tt.asked {
			r.ask("1", board.VerbRetry, board.Command{})
		}
		if tt.meantime != nil {
			onRecord(t, r, tt.meantime)
		}
		for _, it := range items(0, 4) {
			putResult(t, r, it, item.OutcomeDone)
			r.outcomes.ledger.Settle(it.ID, 0, ledger.Done, "")
		}
		r.windows.complete = true
		if _, err := r.publish(t.Context(), items(50, 1)); err != nil { // of nothing: the identity is unknown
			t.Fatal(err)
		}
		err := r.end(t.Context(), tt.phase)
		if errors.Is(err, errEnded) != tt.ends || errors.Is(err, errPhaseChanged) != tt.changed || err != nil && !tt.ends && !tt.changed {
			t.Errorf("%s: %v", name, err)
		}
		c, err := board.Read(t.Context(), r.s.cfg.Board, r.id)
		if err != nil || c.Phase != tt.want || r.rec.Phase != tt.want || (c.Finished.IsZero() == tt.ends) || (c.Last != nil) != tt.ends {
			t.Errorf("%s: record %+v, %v", name, c, err)
		}
	}
}

// A rejected campaign keeps the reason and is paused; one that is to be cancelled is cancelled. Commands get the reason.
func TestRejection(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for wanted, want := range map[record.Wanted]struct {
		phase  record.Phase
		wanted record.Wanted
	}{
		record.WantRun:       {record.PhaseRejected, record.WantPause},
		record.WantPause:     {record.PhaseRejected, record.WantPause},
		record.WantCancel:    {record.PhaseCancelled, record.WantCancel},
		record.WantCancelNow: {record.PhaseCancelled, record.WantCancelNow},
	} {
		r := decidingRunner(t, &now, &strings.Builder{}).onBoard(t)
		r.rec = onRecord(t, r, func(c *record.Campaign) {
			c.Wanted = wanted
		})
		r.ask("1", board.VerbReconcile, board.Command{})
		asked := r.ask("2", board.VerbReconcile, board.Command{})
		if again := r.ask("2", board.VerbReconcile, board.Command{}); again != asked {
			t.Error("a repeated command is another one")
		}
		if err := r.reject(t.Context(), "no images"); !errors.Is(err, errEnded) {
			t.Errorf("%s: %v", wanted, err)
		}
		c, err := board.Read(t.Context(), r.s.cfg.Board, r.id)
		if err != nil || c.Phase != want.phase || c.Wanted != want.wanted || c.Reason != "no images" {
			t.Errorf("%s: record %+v, %v", wanted, c, err)
		}
		if _, err := asked.await(t.Context()); !errors.Is(err, board.ErrRefused) || !strings.Contains(err.Error(), "the campaign is rejected: no images") {
			t.Errorf("%s: the answer to a command: %v", wanted, err)
		}
	}
}

// A campaign that is rejected before its queue is open leaves no work of an earlier coordinator behind.
func TestRejectionDropsEarlierWork(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := runningRunner(t, &now, &strings.Builder{})
	if _, err := r.publish(t.Context(), items(0, 3)); err != nil {
		t.Fatal(err)
	}
	earlier := r.queue.Queue
	r.queue.Queue = nil
	if err := r.reject(t.Context(), "the prior has changed"); !errors.Is(err, errEnded) {
		t.Fatal(err)
	}
	size, err := earlier.Size(t.Context())
	must(t, err)
	if exists, err := earlier.Exists(t.Context()); err != nil || exists || size != 0 {
		t.Errorf("%d items, a consumer %t, %v", size, exists, err)
	}
}

// A campaign that has ended is opened again when it was resumed, or has open items; otherwise it stays.
func TestReopenedCampaign(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for name, tt := range map[string]struct {
		phase   record.Phase
		wanted  record.Wanted
		settled bool
		want    bool
	}{
		"cancelled":              {record.PhaseCancelled, record.WantCancel, false, false},
		"cancelled and resumed":  {record.PhaseCancelled, record.WantRun, false, true},
		"rejected":               {record.PhaseRejected, record.WantPause, false, false},
		"rejected and resumed":   {record.PhaseRejected, record.WantRun, false, true},
		"finished":               {record.PhaseFinished, record.WantRun, true, false},
		"finished with an open":  {record.PhaseFinished, record.WantRun, false, true},
		"cancelled, all settled": {record.PhaseCancelled, record.WantCancel, true, false},
	} {
		r := runningRunner(t, &now, &strings.Builder{})
		r.rec = onRecord(t, r, func(c *record.Campaign) {
			c.Phase, c.Wanted, c.Reason, c.Finished, c.Round = tt.phase, tt.wanted, "before", now.UTC(), 3
		})
		for _, it := range items(0, 4) {
			if tt.settled {
				r.outcomes.ledger.Settle(it.ID, 0, ledger.Done, "")
			}
		}
		r.trial.checked, r.trial.canary = &record.Checked{}, []string{id(0)}
		if err := r.reopenEnded(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		c, err := board.Read(t.Context(), r.s.cfg.Board, r.id)
		must(t, err)
		if reopened := c.Phase == record.PhaseQueued; reopened != tt.want || reopened != (c.Reason == "") || reopened != c.Finished.IsZero() ||
			reopened != (c.Round == 4) || reopened != (r.trial.checked == nil) || reopened != (r.trial.canary == nil) {
			t.Errorf("%s: record %+v", name, c)
		}
	}
	// A campaign whose canary failed gets a new round of it.
	r := runningRunner(t, &now, &strings.Builder{})
	r.rec = onRecord(t, r, func(c *record.Campaign) {
		c.Phase, c.Released, c.Canary = record.PhaseRejected, false, 2
	})
	for _, it := range items(0, 3) {
		r.outcomes.ledger.Settle(it.ID, 0, ledger.Failed, "no light")
	}
	if err := r.reopenEnded(t.Context()); err != nil || r.rec.Phase != record.PhaseQueued || r.rec.Round != 2 || r.outcomes.ledger.Open() != 3 {
		t.Errorf("%d open items, record %+v, %v", r.outcomes.ledger.Open(), r.rec, err)
	}
}

// A cancelled campaign waits for the outcomes of its leased items for one lease, and for nothing if it ends at once.
func TestCancelledCampaign(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for name, tt := range map[string]struct {
		wanted record.Wanted
		lease  time.Duration
		answer bool
		done   int
	}{
		"answered":  {record.WantCancel, time.Hour, true, 1},
		"silent":    {record.WantCancel, time.Millisecond, false, 0},
		"at once":   {record.WantCancelNow, time.Hour, false, 0},
		"in result": {record.WantCancelNow, time.Hour, true, 1},
	} {
		r := runningRunner(t, &now, &strings.Builder{})
		r.s.cfg.AckWait, r.windows.complete = tt.lease, true
		r.rec = onRecord(t, r, func(c *record.Campaign) { c.Wanted = tt.wanted })
		all := items(0, 4)
		if _, err := r.publish(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		leases, err := r.queue.Lease(t.Context(), 1, 20*time.Second)
		if err != nil || len(leases) != 1 {
			t.Fatalf("%s: %d leases, %v", name, len(leases), err)
		}
		if tt.answer {
			it := all[slices.IndexFunc(all, func(it item.Item) bool { return it.ID == leases[0].ID() })]
			putResult(t, r, it, item.OutcomeDone)
			must(t, r.queue.PublishResult(t.Context(), it.ID, 0, []byte(`{"outcome":"done"}`)))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err = r.applyWanted(ctx)
		cancel()
		if !errors.Is(err, errEnded) || r.rec.Phase != record.PhaseCancelled || r.outcomes.ledger.Total(0, false).Done != tt.done || r.outcomes.ledger.Open() != 4-tt.done {
			t.Errorf("%s: %v, phase %s, %d done", name, err, r.rec.Phase, r.outcomes.ledger.Total(0, false).Done)
		}
	}
}

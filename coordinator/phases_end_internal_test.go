package coordinator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator/board"
	"ddiff/coordinator/ledger"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/item"
)

// onRecord changes the record on the board as a user or another leader does.
func onRecord(t *testing.T, r *runner, change func(c *manifest.Campaign)) *manifest.Campaign {
	t.Helper()
	c, err := board.Update(t.Context(), r.s.cfg.Board, r.id, func(c *manifest.Campaign) error {
		change(c)
		return nil
	})
	must(t, err)
	return c
}

// A campaign ends unless users have changed what they want, or another leader its phase.
func TestEndOfCampaign(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	cancels := func(c *manifest.Campaign) { c.Wanted = manifest.WantCancel }
	for name, tt := range map[string]struct {
		phase    manifest.Phase
		before   func(c *manifest.Campaign) // that the runner knows
		meantime func(c *manifest.Campaign) // that it does not know
		want     manifest.Phase
		ends     bool
		changed  bool // by another leader
	}{
		"finished":                 {phase: manifest.PhaseFinished, want: manifest.PhaseFinished, ends: true},
		"cancelled":                {phase: manifest.PhaseCancelled, before: cancels, want: manifest.PhaseCancelled, ends: true},
		"finished, but cancelled":  {phase: manifest.PhaseFinished, meantime: cancels, want: manifest.PhaseRunning},
		"finished, but a command":  {phase: manifest.PhaseFinished, meantime: func(c *manifest.Campaign) { c.Commands = []manifest.Command{{ID: "1", Verb: manifest.CommandRetry}} }, want: manifest.PhaseRunning},
		"cancelled, but resumed":   {phase: manifest.PhaseCancelled, before: cancels, meantime: func(c *manifest.Campaign) { c.Wanted = manifest.WantRun }, want: manifest.PhaseRunning},
		"finished by another lead": {phase: manifest.PhaseFinished, meantime: func(c *manifest.Campaign) { c.Phase = manifest.PhaseCancelled }, want: manifest.PhaseCancelled, changed: true},
	} {
		r := runningRunner(t, &now, &strings.Builder{})
		if tt.before != nil {
			r.rec = onRecord(t, r, tt.before)
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
		if err != nil || c.Phase != tt.want || r.rec.Phase != tt.want || (c.Finished.IsZero() == tt.ends) || c.Ends > 1 || (c.Ends == 1) != tt.ends {
			t.Errorf("%s: record %+v, %v", name, c, err)
		}
	}
}

// A rejected campaign keeps the reason and is paused; one that is to be cancelled is cancelled. Commands get the reason.
func TestRejection(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for wanted, want := range map[manifest.Wanted]struct {
		phase  manifest.Phase
		wanted manifest.Wanted
	}{
		manifest.WantRun:       {manifest.PhaseRejected, manifest.WantPause},
		manifest.WantPause:     {manifest.PhaseRejected, manifest.WantPause},
		manifest.WantCancel:    {manifest.PhaseCancelled, manifest.WantCancel},
		manifest.WantCancelNow: {manifest.PhaseCancelled, manifest.WantCancelNow},
	} {
		r := decidingRunner(t, &now, &strings.Builder{}).onBoard(t)
		r.rec = onRecord(t, r, func(c *manifest.Campaign) {
			c.Wanted, c.Commands = wanted, []manifest.Command{{ID: "1", Verb: manifest.CommandReconcile}, {ID: "2", Verb: manifest.CommandReconcile}}
		})
		if err := r.reject(t.Context(), "no images"); !errors.Is(err, errEnded) {
			t.Errorf("%s: %v", wanted, err)
		}
		c, err := board.Read(t.Context(), r.s.cfg.Board, r.id)
		if err != nil || c.Phase != want.phase || c.Wanted != want.wanted || c.Reason != "no images" || len(c.Commands) != 0 || len(c.Answered) != 2 ||
			c.Answered[1].Error != "the campaign is rejected: no images" {
			t.Errorf("%s: record %+v, %v", wanted, c, err)
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
		phase   manifest.Phase
		wanted  manifest.Wanted
		settled bool
		want    bool
	}{
		"cancelled":              {manifest.PhaseCancelled, manifest.WantCancel, false, false},
		"cancelled and resumed":  {manifest.PhaseCancelled, manifest.WantRun, false, true},
		"rejected":               {manifest.PhaseRejected, manifest.WantPause, false, false},
		"rejected and resumed":   {manifest.PhaseRejected, manifest.WantRun, false, true},
		"finished":               {manifest.PhaseFinished, manifest.WantRun, true, false},
		"finished with an open":  {manifest.PhaseFinished, manifest.WantRun, false, true},
		"cancelled, all settled": {manifest.PhaseCancelled, manifest.WantCancel, true, false},
	} {
		r := runningRunner(t, &now, &strings.Builder{})
		r.rec = onRecord(t, r, func(c *manifest.Campaign) {
			c.Phase, c.Wanted, c.Reason, c.Finished, c.Round = tt.phase, tt.wanted, "before", now.UTC(), 3
		})
		for _, it := range items(0, 4) {
			if tt.settled {
				r.outcomes.ledger.Settle(it.ID, 0, ledger.Done, "")
			}
		}
		r.trial.checked, r.trial.canary = &manifest.Checked{}, []string{id(0)}
		if err := r.reopenEnded(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		c, err := board.Read(t.Context(), r.s.cfg.Board, r.id)
		must(t, err)
		if reopened := c.Phase == manifest.PhaseQueued; reopened != tt.want || reopened != (c.Reason == "") || reopened != c.Finished.IsZero() ||
			reopened != (c.Round == 4) || reopened != (r.trial.checked == nil) || reopened != (r.trial.canary == nil) {
			t.Errorf("%s: record %+v", name, c)
		}
	}
	// A campaign whose canary failed gets a new round of it.
	r := runningRunner(t, &now, &strings.Builder{})
	r.rec = onRecord(t, r, func(c *manifest.Campaign) {
		c.Phase, c.Released, c.Canary, c.Shards = manifest.PhaseRejected, false, 2, 0
	})
	for _, it := range items(0, 3) {
		r.outcomes.ledger.Settle(it.ID, 0, ledger.Failed, "no light")
	}
	if err := r.reopenEnded(t.Context()); err != nil || r.rec.Phase != manifest.PhaseQueued || r.rec.Round != 2 || r.outcomes.ledger.Open() != 3 {
		t.Errorf("%d open items, record %+v, %v", r.outcomes.ledger.Open(), r.rec, err)
	}
}

// The queue is paused and resumed with the campaign, and the phase follows.
func TestPausedQueue(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := runningRunner(t, &now, &strings.Builder{})
	_, err := r.publish(t.Context(), items(0, 2))
	must(t, err)
	step := func(name string, want manifest.Phase, leases int) {
		t.Helper()
		// The consumer learns of a published item, and of the copy of a released one, later than the stream.
		var err error
		for pending := uint64(0); err == nil && pending < 2; {
			pending, _, err = r.queue.Depth(t.Context())
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := r.applyWanted(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all, err := r.queue.Lease(t.Context(), 4, 0)
		if err != nil && !errors.Is(err, queue.ErrNotReady) || len(all) != leases || r.rec.Phase != want || r.queue.paused != (want == manifest.PhasePaused) {
			t.Errorf("%s: phase %s, paused %t, %d leases, %v", name, r.rec.Phase, r.queue.paused, len(all), err)
		}
		for _, l := range all {
			must(t, l.Release(t.Context()))
		}
	}
	set := func(w manifest.Wanted) { r.rec = onRecord(t, r, func(c *manifest.Campaign) { c.Wanted = w }) }
	step("running", manifest.PhaseRunning, 2)
	set(manifest.WantPause)
	step("paused", manifest.PhasePaused, 0)
	step("paused again", manifest.PhasePaused, 0)
	now = now.Add(time.Hour)
	set(manifest.WantRun)
	step("resumed", manifest.PhaseRunning, 2)
	if !r.outcomes.progress.Equal(now) {
		t.Errorf("the progress is of %v", r.outcomes.progress)
	}
	// The queue was paused, and the record is not: a leader died between the two.
	must(t, r.queue.pause(t.Context(), true))
	step("resumed by another leader", manifest.PhaseRunning, 2)
	set(manifest.WantPause)
	step("paused before its release", manifest.PhasePaused, 0)
	r.rec = onRecord(t, r, func(c *manifest.Campaign) { c.Wanted, c.Released = manifest.WantRun, false })
	step("resumed before its release", manifest.PhaseQueued, 2)
}

// A cancelled campaign waits for the outcomes of its leased items for one lease, and for nothing if it ends at once.
func TestCancelledCampaign(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for name, tt := range map[string]struct {
		wanted manifest.Wanted
		lease  time.Duration
		answer bool
		done   int
	}{
		"answered":  {manifest.WantCancel, time.Hour, true, 1},
		"silent":    {manifest.WantCancel, time.Millisecond, false, 0},
		"at once":   {manifest.WantCancelNow, time.Hour, false, 0},
		"in result": {manifest.WantCancelNow, time.Hour, true, 1},
	} {
		r := runningRunner(t, &now, &strings.Builder{})
		r.s.cfg.AckWait, r.windows.complete = tt.lease, true
		r.rec = onRecord(t, r, func(c *manifest.Campaign) { c.Wanted = tt.wanted })
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
		if !errors.Is(err, errEnded) || r.rec.Phase != manifest.PhaseCancelled || r.outcomes.ledger.Total(0, false).Done != tt.done || r.outcomes.ledger.Open() != 4-tt.done {
			t.Errorf("%s: %v, phase %s, %d done", name, err, r.rec.Phase, r.outcomes.ledger.Total(0, false).Done)
		}
	}
}

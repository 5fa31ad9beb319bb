package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/record"
)

// A phase follows from the record, the stored windows and rounds, and the ledger; a runner does not need to know what
// the previous one was doing. Every step is idempotent, and the write that changes the phase comes last: a coordinator
// that dies before it leaves a record from which the next one repeats the step. An ended phase is written only if the
// record still asks for it, see end.

// reopenEnded moves an ended campaign with work back to phase queued: one that was cancelled or rejected and then
// resumed, or one that has finished and has open items, because a coordinator died during a retry. Canary items of a
// campaign that was not released start again in a new round, so that their earlier failures do not count.
func (r *runner) reopenEnded(ctx context.Context) error {
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	var resumed bool
	switch r.rec.Phase {
	case record.PhaseCancelled, record.PhaseRejected:
		resumed = r.rec.Wanted == record.WantRun
	case record.PhaseFinished:
		resumed = r.outcomes.ledger.Open() > 0
	}
	if !resumed {
		return nil
	}
	if !r.rec.Released && r.windows.sound >= 0 {
		first, err := r.rereadFirst(ctx)
		if err != nil {
			return err
		}
		canary := ledger.Round{Items: identities(canaries(first.Items, r.rec.Canary))}
		if _, err := r.rounds.start(ctx, r.outcomes.ledger, canary); err != nil {
			return err
		}
	}
	r.trial = trial{} // of the earlier rounds
	wanted := r.rec.Wanted
	return r.saveIf(ctx, func(c *record.Campaign) bool { return c.Wanted == wanted }, func(c *record.Campaign) {
		c.Phase, c.Wanted, c.Reason, c.Round, c.Finished = record.PhaseQueued, record.WantRun, "", c.Round+1, time.Time{}
	})
}

// applyWanted executes the commands that wait and brings the campaign into the wanted state.
func (r *runner) applyWanted(ctx context.Context) error {
	if err := r.executeAsked(ctx); err != nil {
		return err
	}
	if !r.rec.Phase.Ended() {
		if err := errors.Join(r.pauseAfterFault(ctx), r.pauseOverBudget(ctx), r.compareCap(ctx)); err != nil {
			return err
		}
	}
	switch r.standing().wanted() {
	case actionLeave:
		if err := r.queue.drop(ctx); err != nil {
			return err
		}
		return errEnded
	case actionCancel:
		return r.cancelCampaign(ctx)
	case actionPause:
		if err := errors.Join(r.queue.pause(ctx, true), r.outcomes.parts.Save(ctx, r.outcomes.seen, true)); err != nil {
			return err
		}
		return r.save(ctx, func(c *record.Campaign) {
			if c.Phase = record.PhasePaused; c.Wanted == record.WantRun {
				c.Reason = r.hold
			}
		})
	case actionResume:
		return r.resume(ctx)
	}
	return nil
}

// resume resumes the queue and leaves the phase paused.
func (r *runner) resume(ctx context.Context) error {
	r.outcomes.progress = r.s.cfg.Now()
	if err := r.queue.pause(ctx, false); err != nil {
		return err
	}
	if r.rec.Phase != record.PhasePaused {
		return nil // the record was changed between openQueue and here
	}
	if r.rec.Released {
		return r.enterPhase(ctx, record.PhaseRunning)
	}
	return r.enterPhase(ctx, record.PhaseQueued)
}

// standing is what the next action follows from.
func (r *runner) standing() standing {
	return standing{record: r.rec, windows: &r.windows, ledger: r.outcomes.ledger, trial: r.trial, paused: r.queue.paused, hold: r.hold}
}

// advance moves the campaign to its next phase, or publishes the next window, when it can.
func (r *runner) advance(ctx context.Context) error {
	next, err := r.standing().next()
	if err != nil {
		return err
	}
	switch next {
	case actionReconcile:
		if _, err := r.reconcile(ctx); err != nil {
			return err
		}
		return r.enterPhase(ctx, record.PhaseRunning)
	case actionSkipTrial:
		r.windows.warning = "preflight and canary were skipped: no item of the dataset can be restored"
		r.log.Warn(r.windows.warning)
		return r.release(ctx)
	case actionPreflight:
		return r.startPreflight(ctx)
	case actionEnterCanary:
		return r.enterPhase(ctx, record.PhaseCanary)
	case actionPublishCanary:
		return r.publishCanary(ctx)
	case actionRelease:
		return r.release(ctx)
	case actionPublishWindow:
		return r.publishNextWindow(ctx)
	case actionFinish:
		return r.finish(r, ctx)
	}
	return nil
}

// enterPhase also removes the reason of the earlier phase.
func (r *runner) enterPhase(ctx context.Context, p record.Phase) error {
	return r.save(ctx, func(c *record.Campaign) { c.Phase, c.Reason = p, "" })
}

// release permits publishing of all items.
func (r *runner) release(ctx context.Context) error {
	r.trial.canary = nil
	return r.save(ctx, func(c *record.Campaign) { c.Phase, c.Released = record.PhaseRunning, true })
}

// cancelCampaign drops the waiting items and ends the campaign. It waits for the leased items, at most for one lease,
// unless the campaign is to stop at once. If the campaign is resumed meanwhile, it publishes the dropped items again.
func (r *runner) cancelCampaign(ctx context.Context) error {
	_, leased, err := r.queue.Depth(ctx)
	if err != nil || (!r.rec.Released && r.trial.canary == nil) {
		leased = 0 // the queue is gone, or has only a preflight
	}
	if err := r.queue.Drop(ctx); err != nil {
		return fmt.Errorf("cancel campaign: %w", err)
	}
	before := r.outcomes.ledger.Open()
	limit := time.NewTimer(r.s.cfg.AckWait)
	defer limit.Stop()
	for r.rec.Wanted == record.WantCancel && before-r.outcomes.ledger.Open() < int(leased) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-r.outcomes.events:
			if err := r.enterEvents(e); err != nil {
				return err
			}
			continue
		case <-r.wake:
			r.applyOffered()
			continue
		case <-limit.C:
		}
		break
	}
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	// Items whose outcome was lost have a result in storage.
	if err := r.settleListed(r, ctx); err != nil {
		return err
	}
	return r.end(ctx, record.PhaseCancelled)
}

// end writes the report and ends the campaign as finished or cancelled. If users have changed the
// wanted state or sent a command meanwhile, or results are missing from storage, the campaign does not end.
func (r *runner) end(ctx context.Context, p record.Phase) (err error) {
	ctx, span := r.startSpan(ctx, "finish")
	defer func() {
		if errors.Is(err, errEnded) {
			endSpan(span, nil)
			return
		}
		endSpan(span, err)
	}()
	_, err = r.writeReport(ctx, true)
	var missing missingResultsError
	if errors.As(err, &missing) {
		if err := r.restoreMissing(ctx, missing); err != nil || p != record.PhaseCancelled {
			return err
		}
		_, err = r.writeReport(ctx, true)
	}
	if err != nil {
		return err
	}
	if r.rec.Released {
		if err := r.outcomes.parts.FoldAll(ctx, r.outcomes.seen); err != nil {
			return err
		}
	}
	err = r.enterEnd(ctx, p, func(c *record.Campaign) bool {
		if p == record.PhaseCancelled {
			return board.WantsCancel(c)
		}
		return c.Wanted == record.WantRun && r.nextAsked() == nil
	}, func(c *record.Campaign) { c.Phase = p })
	if errors.Is(err, errNotEnded) {
		return r.recover(ctx) // the queue was dropped
	}
	return err
}

// reject ends the campaign with a reason. Resuming the campaign starts it again. A campaign that is to be cancelled is
// cancelled with the reason. Commands that wait are answered with it.
func (r *runner) reject(ctx context.Context, reason string) error {
	wanted, p := r.rec.Wanted, record.PhaseRejected
	if board.WantsCancel(r.rec) {
		p = record.PhaseCancelled
	}
	err := r.enterEnd(ctx, p, func(c *record.Campaign) bool { return c.Wanted == wanted }, func(c *record.Campaign) {
		c.Phase, c.Reason = p, reason
		if c.Wanted == record.WantRun {
			c.Wanted = record.WantPause
		}
	})
	if errors.Is(err, errEnded) {
		r.refuse(fmt.Errorf("%w: the campaign is rejected: %s", board.ErrRefused, reason))
	}
	return err
}

// errNotEnded: users have changed the record while the campaign was ending.
var errNotEnded = errors.New("the record has changed while the campaign was ending")

// enterEnd drops the queue, publishes the last status, and moves the record to an ended phase, in this order: the next
// coordinator completes every step that a crash prevents. It returns errEnded, or errNotEnded if the condition on the
// record does not hold.
func (r *runner) enterEnd(
	ctx context.Context, p record.Phase, condition func(c *record.Campaign) bool, change func(c *record.Campaign),
) error {
	if !r.opening { // also the outcomes of a canary
		if err := r.outcomes.parts.FoldAll(ctx, r.outcomes.seen); err != nil {
			return err
		}
	}
	if err := r.storeUses(ctx); err != nil {
		return err
	}
	if err := r.dropQueue(ctx); err != nil {
		return err
	}
	before, again := r.rec.Phase, r.rec.Last != nil
	ended := *r.rec
	change(&ended)
	if err := r.publishStatusOf(ctx, &ended, 0); err != nil {
		return err
	}
	last := r.status.last
	err := r.saveIf(ctx, condition, func(c *record.Campaign) {
		change(c)
		c.Finished, c.Last, c.Urgent = r.s.cfg.Now().UTC(), &last, false
	})
	switch {
	case err != nil:
		return err
	case r.rec.Phase == p:
		r.endTrace(ctx, p, again)
		return errEnded
	case r.rec.Phase == before:
		return errNotEnded
	}
	return errPhaseChanged
}

// dropQueue drops the campaign's queue, also if only an earlier coordinator has opened it.
func (r *runner) dropQueue(ctx context.Context) (err error) {
	if r.queue.Queue == nil {
		if r.queue.Queue, err = r.s.inspect(ctx, r.id); err != nil {
			return fmt.Errorf("drop work: %w", err)
		}
	}
	return r.queue.drop(ctx)
}

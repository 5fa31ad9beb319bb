package coordinator

import (
	"context"
	"fmt"
	"time"

	"ddiff/manifest"
)

// applyWanted executes the pending commands and brings the campaign into the wanted state.
func (r *runner) applyWanted(ctx context.Context) error {
	for len(r.rec.Commands) > 0 {
		if err := r.execute(ctx, r.rec.Commands[0]); err != nil {
			return err
		}
	}
	if r.rec.Phase.Ended() {
		return errEnded
	}
	switch r.rec.Wanted {
	case manifest.WantCancel, manifest.WantCancelNow:
		return r.cancelCampaign(ctx)
	case manifest.WantPause:
		if r.rec.Phase == manifest.PhasePaused {
			return nil
		}
		if err := r.queue.Pause(ctx); err != nil {
			return fmt.Errorf("pause campaign: %w", err)
		}
		return r.enterPhase(ctx, manifest.PhasePaused)
	}
	if r.rec.Phase != manifest.PhasePaused {
		return nil
	}
	if err := r.queue.Resume(ctx); err != nil {
		return fmt.Errorf("resume campaign: %w", err)
	}
	if r.rec.Released {
		return r.enterPhase(ctx, manifest.PhaseRunning)
	}
	return r.enterPhase(ctx, manifest.PhaseQueued)
}

// advance moves the campaign to its next phase, or publishes the next window, when it can.
func (r *runner) advance(ctx context.Context) error {
	switch r.rec.Phase {
	case manifest.PhaseQueued:
		switch {
		case r.rec.Released:
			return r.enterPhase(ctx, manifest.PhaseRunning)
		case r.sound < 0 && !r.complete:
			return nil // wait for an item to check with
		}
		return r.startPreflight(ctx)
	case manifest.PhasePreflight:
		switch {
		case r.checked == nil:
			return nil
		case r.checked.Failed != "":
			return rejection{fmt.Errorf("preflight: %s: %s", r.checked.Failed, r.checked.Reason)}
		case r.rec.Canary == 0:
			return r.release(ctx)
		}
		return r.enterPhase(ctx, manifest.PhaseCanary)
	case manifest.PhaseCanary:
		return r.advanceCanary(ctx)
	case manifest.PhaseRunning:
		if r.rec.Shards < r.stored {
			return r.publishNextWindow(ctx)
		}
		if r.complete && r.ledger.open == 0 {
			if r.s.cfg.run != nil {
				return errEnded // Run.Close writes the report
			}
			return r.finish(ctx, manifest.PhaseFinished)
		}
	}
	return nil
}

func (r *runner) enterPhase(ctx context.Context, p manifest.Phase) error {
	return r.save(ctx, func(c *manifest.Campaign) { c.Phase = p })
}

// release permits publishing of all items.
func (r *runner) release(ctx context.Context) error {
	r.canary = nil
	return r.save(ctx, func(c *manifest.Campaign) { c.Phase, c.Released = manifest.PhaseRunning, true })
}

// cancelCampaign drops the waiting items and ends the campaign. It waits for the leased items, at most for one lease,
// unless the campaign is to stop at once.
func (r *runner) cancelCampaign(ctx context.Context) error {
	_, leased, err := r.queue.Depth(ctx)
	if err != nil {
		leased = 0 // the queue is gone
	}
	if err := r.queue.Drop(ctx); err != nil {
		return fmt.Errorf("cancel campaign: %w", err)
	}
	before := r.ledger.open
	limit := time.NewTimer(r.s.cfg.AckWait)
	defer limit.Stop()
	for r.rec.Wanted == manifest.WantCancel && before-r.ledger.open < int(leased) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-r.events:
			if err := r.settleEvents(e); err != nil {
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
	return r.finish(ctx, manifest.PhaseCancelled)
}

// finish writes the report and ends the campaign. A cancelled campaign first settles the items whose outcome was lost
// but whose result is in storage.
func (r *runner) finish(ctx context.Context, p manifest.Phase) error {
	if p == manifest.PhaseCancelled {
		if err := r.settleListed(ctx); err != nil {
			return err
		}
	}
	if _, err := r.writeReport(ctx); err != nil {
		return err
	}
	if err := r.queue.Drop(ctx); err != nil {
		return fmt.Errorf("drop work: %w", err)
	}
	if err := r.save(ctx, func(c *manifest.Campaign) { c.Phase, c.Finished = p, r.s.cfg.Now().UTC() }); err != nil {
		return err
	}
	if r.rec.Phase != p {
		return errPhaseChanged
	}
	if err := r.publishStatus(ctx, 0); err != nil {
		return err
	}
	return errEnded
}

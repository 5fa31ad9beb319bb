package coordinator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/record"
)

// rejection is an error of the campaign itself, such as a missing dataset. The campaign is rejected with it, after a second look: one
// wrong answer of a server or of a worker rejects no campaign.
type rejection struct{ error }

func (e rejection) Unwrap() error { return e.error }

// maxReason is the largest size in bytes of a text for people in a record, which the board limits. A sweep may have a problem in each of
// thousands of tasks.
const maxReason = 8 << 10

// brief returns a text without what exceeds maxReason.
func brief(text string) string {
	if len(text) <= maxReason {
		return text
	}
	return strings.ToValidUTF8(text[:maxReason], "") + "…"
}

// maxLooks is the number of different rejections in succession of which the last one counts.
const maxLooks = 3

// doubt is a rejection that a second look has to confirm.
type doubt struct {
	reason string
	looks  int
}

// confirms notes a rejection, and reports whether it counts.
func (d *doubt) confirms(reason string) bool {
	if d.looks++; reason == d.reason || d.looks == maxLooks {
		*d = doubt{}
		return true
	}
	d.reason = reason
	return false
}

// errDoubted: the campaign is rejected if the same error comes again.
var errDoubted = errors.New("looks again before the campaign is rejected")

// rejectOrDoubt rejects the campaign if a second look has confirmed the reason, or there is nothing to lose. Otherwise it returns
// errDoubted, with which the runner opens the campaign again after Config.Restart.
func (r *runner) rejectOrDoubt(ctx context.Context, reason string) error {
	if board.WantsCancel(r.rec) || r.doubt.confirms(reason) {
		return r.reject(ctx, reason)
	}
	if err := r.repeatPreflight(ctx); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", errDoubted, reason)
}

// repeatPreflight lets a worker check the campaign again whose preflight has failed. A preflight that has ended its workers is not
// repeated: it has had several looks, which cost a worker each.
func (r *runner) repeatPreflight(ctx context.Context) error {
	if c := r.trial.checked; r.rec.Phase != record.PhasePreflight || c == nil || c.Failed == record.CheckedByNone {
		return nil
	}
	return r.save(ctx, func(c *record.Campaign) { c.Phase, c.Round = record.PhaseQueued, c.Round+1 })
}

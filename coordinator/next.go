package coordinator

import (
	"fmt"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/record"
)

// action is the next step of a campaign.
type action string

const (
	actionWait          action = "wait" // for an outcome, a window, a changed record or a tick
	actionLeave         action = "leave the ended campaign"
	actionCancel        action = "cancel"
	actionPause         action = "pause"
	actionResume        action = "resume"
	actionReconcile     action = "publish what the queue lacks"
	actionSkipTrial     action = "skip preflight and canary"
	actionPreflight     action = "publish the preflight"
	actionEnterCanary   action = "enter the phase canary"
	actionPublishCanary action = "publish the canary items"
	actionRelease       action = "release"
	actionPublishWindow action = "publish the next window"
	actionFinish        action = "finish"
)

// standing is the state from which the next action follows. Its methods only read it.
type standing struct {
	record  *record.Campaign
	windows *windows
	ledger  *ledger.Ledger
	trial   trial
	paused  bool   // the queue delivers nothing
	hold    string // why the campaign has to wait; empty: it need not
}

// wanted returns the action that brings the campaign into the wanted state.
func (s standing) wanted() action {
	c := s.record
	switch {
	case c.Phase.Ended() && (c.Phase != record.PhaseRejected || !board.WantsCancel(c)):
		return actionLeave
	case board.WantsCancel(c):
		return actionCancel
	case c.Wanted == record.WantPause:
		if c.Phase != record.PhasePaused || !s.paused {
			return actionPause
		}
	case s.hold != "":
		if c.Phase != record.PhasePaused || !s.paused || c.Reason != s.hold {
			return actionPause
		}
	case c.Phase == record.PhasePaused || s.paused:
		return actionResume
	}
	return actionWait
}

// next returns the action of a campaign that is in its wanted state. The error rejects the campaign.
func (s standing) next() (action, error) {
	c := s.record
	switch c.Phase {
	case record.PhaseQueued:
		switch {
		case c.Released: // the campaign was resumed: its queue lacks items
			return actionReconcile, nil
		case s.windows.sound >= 0:
			return actionPreflight, nil
		case s.windows.complete:
			return actionSkipTrial, nil
		}
	case record.PhasePreflight:
		switch checked := s.trial.checked; {
		case checked == nil:
		case checked.Failed != "":
			return actionWait, rejection{fmt.Errorf("preflight: %s: %s", checked.Failed, checked.Reason)}
		case c.Canary == 0:
			return actionRelease, nil
		default:
			return actionEnterCanary, nil
		}
	case record.PhaseCanary:
		return s.nextOfCanary()
	case record.PhaseRunning:
		switch {
		case s.windows.published < s.windows.stored:
			return actionPublishWindow, nil
		case s.windows.complete && s.ledger.Open() == 0:
			return actionFinish, nil
		}
	}
	return actionWait, nil
}

// nextOfCanary waits until all canary items are settled. It rejects the campaign if none is done: one bad image must not stop
// a campaign, also if it ends the workers that restore it.
func (s standing) nextOfCanary() (action, error) {
	if s.trial.canary == nil {
		return actionPublishCanary, nil
	}
	next := actionWait
	var last string
	for _, id := range s.trial.canary {
		switch s.ledger.State(id) {
		case ledger.Pending:
			return actionWait, nil
		case ledger.Dead:
			last = fmt.Sprintf("item %.12s is dead: %s", id, s.ledger.Reason(id))
		case ledger.Failed:
			last = s.ledger.Reason(id)
		case ledger.Done:
			next = actionRelease
		}
	}
	if next == actionWait {
		return next, rejection{fmt.Errorf("canary: none of %d items could be restored; the last reason: %s", len(s.trial.canary), last)}
	}
	return next, nil
}

// needsWindow reports whether the next window may be stored: until a window has an item for the preflight at once; the
// others when all windows before them are published.
func (s standing) needsWindow() bool {
	c := s.record
	if s.windows.complete || c.Wanted != record.WantRun {
		return false
	}
	return (!c.Released && s.windows.sound < 0) || (c.Phase == record.PhaseRunning && s.windows.published == s.windows.stored)
}

// expected returns the number of items that the queue must hold at least.
func (s standing) expected() int {
	switch s.record.Phase {
	case record.PhasePreflight:
		if s.trial.checked == nil {
			return 1
		}
	case record.PhaseCanary:
		n := 0
		for _, id := range s.trial.canary {
			if s.ledger.State(id) == ledger.Pending {
				n++
			}
		}
		return n
	case record.PhaseRunning:
		if s.windows.published >= s.windows.stored {
			return s.ledger.Open()
		}
	}
	return 0
}

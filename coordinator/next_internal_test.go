package coordinator

import (
	"errors"
	"testing"

	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/record"
)

// standingOf is the standing of a running campaign with one published window, which is not the last, and five items, of which
// the first is done, the second failed and the third dead.
func standingOf() standing {
	l := ledger.New()
	for i, to := range []ledger.State{ledger.Done, ledger.Failed, ledger.Dead, ledger.Pending, ledger.Pending} {
		l.Add(id(i))
		l.Settle(id(i), 0, to, []string{"", "no light", "no memory", "", ""}[i])
	}
	return standing{
		record:  &record.Campaign{Phase: record.PhaseRunning, Wanted: record.WantRun, Released: true},
		windows: &windows{stored: 1, published: 1}, ledger: l,
	}
}

// before puts a standing into a phase before its release.
func (s *standing) before(p record.Phase, canary ...int) {
	s.record.Phase, s.record.Released, s.windows.published = p, false, 0
	for _, i := range canary {
		s.trial.canary = append(s.trial.canary, id(i))
	}
}

// TestNextAction has the next action, and the number of items that the queue must hold, for each phase.
func TestNextAction(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		change   func(s *standing)
		want     action
		expected int
		rejected string
	}{
		{"no window with items", func(s *standing) { s.before(record.PhaseQueued); s.windows.sound = -1 }, actionWait, 0, ""},
		{"no items at all", func(s *standing) {
			s.before(record.PhaseQueued)
			s.windows.sound, s.windows.complete = -1, true
		}, actionSkipTrial, 0, ""},
		{"a window with items", func(s *standing) { s.before(record.PhaseQueued) }, actionPreflight, 0, ""},
		{"resumed after its release", func(s *standing) { s.record.Phase = record.PhaseQueued }, actionReconcile, 0, ""},
		{"no answer", func(s *standing) { s.before(record.PhasePreflight) }, actionWait, 1, ""},
		{"a failed preflight", func(s *standing) {
			s.before(record.PhasePreflight)
			s.trial.checked = &record.Checked{Failed: "memory", Reason: "12 GiB are missing"}
		}, actionWait, 0, "preflight: memory: 12 GiB are missing"},
		{"no canary", func(s *standing) {
			s.before(record.PhasePreflight)
			s.trial.checked = &record.Checked{}
		}, actionRelease, 0, ""},
		{"a canary", func(s *standing) {
			s.before(record.PhasePreflight)
			s.trial.checked, s.record.Canary = &record.Checked{}, 2
		}, actionEnterCanary, 0, ""},
		{"the canary is not published", func(s *standing) { s.before(record.PhaseCanary) }, actionPublishCanary, 0, ""},
		{"the canary is pending", func(s *standing) { s.before(record.PhaseCanary, 3, 4) }, actionWait, 2, ""},
		{"one of the canary is pending", func(s *standing) { s.before(record.PhaseCanary, 0, 1, 3) }, actionWait, 1, ""},
		{"none of the canary is restored", func(s *standing) { s.before(record.PhaseCanary, 1, 2) }, actionWait, 0,
			"canary: none of 2 items could be restored; the last reason: item " + id(2)[:12] + " is dead: no memory"},
		{"one of the canary is restored", func(s *standing) { s.before(record.PhaseCanary, 0, 1, 2) }, actionRelease, 0, ""},
		{"all windows are published", func(*standing) {}, actionWait, 2, ""},
		{"a window is not published", func(s *standing) { s.windows.stored = 2 }, actionPublishWindow, 0, ""},
		{"more windows are published than stored", func(s *standing) { s.windows.stored = 0 }, actionWait, 2, ""},
		{"items are pending", func(s *standing) { s.windows.complete = true }, actionWait, 2, ""},
		{"all items are settled", func(s *standing) {
			s.windows.complete, s.ledger = true, ledger.New()
		}, actionFinish, 0, ""},
		{"paused", func(s *standing) { s.record.Phase = record.PhasePaused }, actionWait, 0, ""},
	} {
		s := standingOf()
		tt.change(&s)
		got, err := s.next()
		var rejected rejection
		if got != tt.want || errors.As(err, &rejected) != (tt.rejected != "") || err != nil && err.Error() != tt.rejected {
			t.Errorf("%s: %s, %v, want %s", tt.name, got, err, tt.want)
		}
		if n := s.expected(); n != tt.expected {
			t.Errorf("%s: %d items in the queue, want %d", tt.name, n, tt.expected)
		}
	}
}

// TestWantedAction has the action that brings a campaign into the wanted state.
func TestWantedAction(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		phase  record.Phase
		wanted record.Wanted
		paused bool // the queue
		want   action
	}{
		{record.PhaseRunning, record.WantRun, false, actionWait},
		{record.PhaseRunning, record.WantRun, true, actionResume},
		{record.PhasePaused, record.WantRun, false, actionResume},
		{record.PhaseRunning, record.WantPause, false, actionPause},
		{record.PhasePaused, record.WantPause, false, actionPause},
		{record.PhasePaused, record.WantPause, true, actionWait},
		{record.PhasePaused, record.WantCancel, true, actionCancel},
		{record.PhaseRunning, record.WantCancelNow, false, actionCancel},
		{record.PhaseRejected, record.WantCancel, false, actionCancel},
		{record.PhaseRejected, record.WantPause, false, actionLeave},
		{record.PhaseFinished, record.WantRun, false, actionLeave},
		{record.PhaseFinished, record.WantCancel, false, actionLeave},
		{record.PhaseCancelled, record.WantCancel, false, actionLeave},
	} {
		s := standing{record: &record.Campaign{Phase: tt.phase, Wanted: tt.wanted}, paused: tt.paused}
		if got := s.wanted(); got != tt.want {
			t.Errorf("%s, wanted %s, queue paused %t: %s, want %s", tt.phase, tt.wanted, tt.paused, got, tt.want)
		}
	}
}

// TestNeedsWindow has the states in which the next window is stored.
func TestNeedsWindow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(s *standing)
		want   bool
	}{
		{"no window with items", func(s *standing) { s.before(record.PhaseQueued); s.windows.sound = -1 }, true},
		{"waits for the preflight", func(s *standing) { s.before(record.PhaseQueued) }, false},
		{"released, but not running", func(s *standing) { s.record.Phase = record.PhaseQueued }, false},
		{"all windows are published", func(*standing) {}, true},
		{"a window is not published", func(s *standing) { s.windows.stored = 2 }, false},
		{"complete", func(s *standing) { s.windows.complete = true }, false},
		{"paused", func(s *standing) { s.record.Wanted = record.WantPause }, false},
		{"cancelled", func(s *standing) { s.record.Wanted = record.WantCancel }, false},
	} {
		s := standingOf()
		tt.change(&s)
		if got := s.needsWindow(); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

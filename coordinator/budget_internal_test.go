package coordinator

import (
	"context"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator/board"
	"ddiff/coordinator/budget"
	"ddiff/internal/lifecycle"
	"ddiff/manifest"
)

// A pause at a limit is no failure that waits for an operator.
func TestPauseAtLimitIsNotBlocked(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for reason, blocked := range map[string]bool{"limit": false, "the environment of worker a fails": true} {
		r := runningRunner(t, &now, &strings.Builder{})
		if !blocked {
			r.rec.Spec.Budget.Items = 3
			must(t, r.pauseOverBudget(t.Context()))
		} else {
			must(t, r.pauseBecause(t.Context(), reason))
		}
		must(t, r.enterPhase(t.Context(), manifest.PhasePaused))
		r.report(0, 0)
		if got := r.s.gauges.byID[r.id]; !strings.Contains(r.rec.Reason, reason) || got.blocked != blocked || got.lag() != 0 {
			t.Errorf("%q: blocked %t, lag %d", r.rec.Reason, got.blocked, got.lag())
		}
	}
}

// A leader that waits for a file leaves the warning of the last status as it was.
func TestBudgetWarningWhileOpening(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	r := runningRunner(t, &now, &strings.Builder{})
	spec := r.rec.Spec
	spec.Name = "other"
	_, _, err := board.Submit(t.Context(), r.s.cfg.Board, &spec, board.Order{Owner: "ann"}, now)
	must(t, err)
	must(t, r.s.cfg.Board.Put(t.Context(), manifest.KeyStatusPrefix+spec.ID(), []byte(`{"id":"`+spec.ID()+`","counts":{"items":5}}`)))
	r.rec.Owner, r.s.cfg.Quotas = "ann", budget.Quotas{"ann": {Items: 10}}
	watch := lifecycle.Go(t.Context(), func(ctx context.Context) error {
		return r.s.owners.Watch(ctx, r.s.cfg.Board, r.s.cfg.Store, time.Hour, r.s.cfg.Logger)
	})
	for r.s.owners.Others("ann", r.id).Items == 0 {
		time.Sleep(time.Millisecond)
	}
	watch.Stop()
	for range 3 {
		must(t, r.publishStatus(t.Context(), 0))
		s, err := board.Status(t.Context(), r.s.cfg.Board, r.id)
		if err != nil || strings.Count(s.Status.Warning, "9 of 10 items") != 1 {
			t.Errorf("warning %q, %v", s.Status.Warning, err)
		}
		r.opening, now = true, now.Add(statusInterval)
	}
}

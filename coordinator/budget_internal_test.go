package coordinator

import (
	"context"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator/board"
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
	r.rec.Owner, r.s.cfg.Quotas = "ann", Quotas{"ann": {Items: 10}}
	watch := lifecycle.Go(t.Context(), func(ctx context.Context) error {
		return r.s.owners.watch(ctx, r.s.cfg.Board, r.s.cfg.Store, time.Hour, r.s.cfg.Logger)
	})
	for r.s.owners.others("ann", r.id).Items == 0 {
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

func TestCompareLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		limits     manifest.Budget
		used       usage
		over, near string
	}{
		{manifest.Budget{}, usage{1e6, 1e9, 1e9}, "", ""},
		{manifest.Budget{Items: 10}, usage{Items: 10}, "", "10 of 10 items"},
		{manifest.Budget{Items: 10}, usage{Items: 11}, "11 of 10 items", ""},
		{manifest.Budget{Seconds: 10}, usage{Seconds: 7.9}, "", ""},
		{manifest.Budget{Seconds: 10}, usage{Seconds: 8}, "", "8 of 10 device-seconds"},
		{manifest.Budget{Seconds: 10, Soft: 0.5}, usage{Seconds: 5}, "", "5 of 10 device-seconds"},
		{manifest.Budget{Seconds: 10}, usage{Seconds: 10}, "10 of 10 device-seconds", ""},
		{manifest.Budget{Seconds: 0.5}, usage{Seconds: 2.3456}, "2.35 of 0.5 device-seconds", ""},
		{manifest.Budget{Seconds: 36000}, usage{Seconds: 30000.4}, "", "30000 of 36000 device-seconds"},
		{manifest.Budget{Seconds: 10, Cost: 2.5}, usage{Seconds: 9, Cost: 2.75}, "a cost of 2.75 of 2.5", "9 of 10 device-seconds"},
	} {
		if over, near := compareLimits(tt.limits, tt.used); over != tt.over || near != tt.near {
			t.Errorf("%+v of %+v: %q, %q", tt.used, tt.limits, over, near)
		}
	}
}

func TestQuotaOf(t *testing.T) {
	t.Parallel()
	q := Quotas{"ann": {Items: 1}, "*": {Items: 2}}
	for owner, want := range map[string]int{"ann": 1, "bob": 2, "": 0} {
		if got := q.Of(owner).Items; got != want {
			t.Errorf("%q may have %d items, want %d", owner, got, want)
		}
	}
}

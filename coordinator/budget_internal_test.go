package coordinator

import (
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/record"
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
		must(t, r.save(t.Context(), func(c *record.Campaign) { c.Phase = record.PhasePaused }))
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
	r.rec.Spec.Budget.Items = 5
	for range 3 {
		must(t, r.publishStatus(t.Context(), 0))
		s, err := board.Status(t.Context(), r.s.cfg.Board, r.id)
		if err != nil || strings.Count(s.Status.Warning, "4 of 5 items") != 1 {
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
		{manifest.Budget{}, usage{Items: 1e6, Seconds: 1e9, Cost: 1e9}, "", ""},
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

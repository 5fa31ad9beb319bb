package coordinator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/record"
	"ddiff/manifest"
)

// A campaign says that it will miss its deadline before it does, once in the log, and gets the largest share of its class.
func TestDeadline(t *testing.T) {
	t.Parallel()
	now, log := time.Unix(1e9, 0), &strings.Builder{}
	r := runningRunner(t, &now, log)
	r.rec = onRecord(t, r, func(c *record.Campaign) { c.Spec.Deadline = now.Add(time.Minute).UTC().Format(time.RFC3339) })
	for _, c := range []struct {
		left, low float64
		late      record.Late
		text      string
	}{{50, 40, "", ""}, {70, 40, record.LateMay, "may be missed"}, {90, 80, record.LateWill, "will be missed"}, {0, 0, "", ""}} {
		late, slack, known := r.rec.Lateness(record.Status{Phase: record.PhaseRunning, Left: c.left, LeftLow: c.low}, "", now)
		if late != c.late || known != (c.left > 0) || known && slack != 60-c.left || !strings.Contains(late.Sentence("x"), c.text) {
			t.Errorf("%+v: %q, %g, %t", c, late, slack, known)
		}
	}
	must(t, r.checkQueue(t.Context()))
	if s := r.status.last; s.Late != "" || r.rec.Urgent {
		t.Errorf("late %q without a rate, urgent %t", s.Late, r.rec.Urgent)
	}
	now = now.Add(2 * time.Minute)
	for range 2 {
		must(t, r.checkQueue(t.Context()))
	}
	s, err := board.Status(t.Context(), r.s.cfg.Board, r.id)
	if err != nil || s.Status.Late != record.LateHas || !strings.Contains(s.Status.Warning, "has passed") || s.Campaign.Share() != record.MaxWeight {
		t.Errorf("%+v, share %d, %v", s.Status, s.Campaign.Share(), err)
	}
	if n := strings.Count(log.String(), "has passed"); n != 1 {
		t.Errorf("the log has %d lines:\n%s", n, log)
	}
	if err := r.reject(t.Context(), "a test"); !errors.Is(err, errEnded) || r.rec.Share() != 1 {
		t.Errorf("share %d at the end, %v", r.rec.Share(), err)
	}
}

// A campaign whose expected end varies about a limit, or is not known for a while, changes its lateness once, not each second.
func TestLatenessIsSteady(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	c := record.Campaign{Spec: manifest.Spec{Deadline: now.Add(time.Minute).UTC().Format(time.RFC3339)}}
	late := record.Late("")
	for i, tc := range []struct {
		left float64 // its interval is 10 % on both sides
		want record.Late
	}{
		{59, ""}, {61, record.LateMay}, {59, record.LateMay}, {61, record.LateMay}, {0, record.LateMay}, {55, record.LateMay}, {54, ""}, {55, ""},
		{67, record.LateWill}, {66, record.LateWill}, {61, record.LateWill}, {0, record.LateWill}, {60, record.LateMay}, {66, record.LateMay}, {54, ""}, {0, ""},
	} {
		late, _, _ = c.Lateness(record.Status{Phase: record.PhaseRunning, Left: tc.left, LeftLow: 0.9 * tc.left, LeftHigh: 1.1 * tc.left}, late, now)
		if late != tc.want {
			t.Errorf("status %d, %g s left: %q, want %q", i, tc.left, late, tc.want)
		}
	}
	if late, slack, known := c.Lateness(record.Status{}, record.LateMay, now.Add(2*time.Minute)); late != record.LateHas || slack != -60 || !known {
		t.Errorf("without workers, a minute after the deadline: %q, %g, %t", late, slack, known)
	}
	if late, _, _ = c.Lateness(record.Status{}, record.LateHas, now); late == record.LateHas {
		t.Error("the deadline has passed after the clock was ahead")
	}
}

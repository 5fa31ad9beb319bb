package coordinator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ddiff/coordinator/board"
	"ddiff/manifest"
)

// A campaign says that it will miss its deadline before it does, once in the log, and gets the largest share of its class.
func TestDeadline(t *testing.T) {
	t.Parallel()
	now, log := time.Unix(1e9, 0), &strings.Builder{}
	r := runningRunner(t, &now, log)
	must(t, r.save(t.Context(), func(c *manifest.Campaign) { c.Spec.Deadline = now.Add(time.Minute).UTC().Format(time.RFC3339) }))
	for _, c := range []struct {
		left, low float64
		late      manifest.Late
		text      string
	}{{50, 40, "", ""}, {70, 40, manifest.LateMay, "may be missed"}, {90, 80, manifest.LateWill, "will be missed"}, {0, 0, "", ""}} {
		late, slack, known := r.rec.Spec.Lateness(manifest.Status{Phase: manifest.PhaseRunning, Left: c.left, LeftLow: c.low}, "", now)
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
	if err != nil || s.Status.Late != manifest.LateHas || !strings.Contains(s.Status.Warning, "has passed") || s.Campaign.Share() != manifest.MaxWeight {
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
	spec := manifest.Spec{Deadline: now.Add(time.Minute).UTC().Format(time.RFC3339)}
	late := manifest.Late("")
	for i, c := range []struct {
		left float64 // its interval is 10 % on both sides
		want manifest.Late
	}{
		{59, ""}, {61, manifest.LateMay}, {59, manifest.LateMay}, {61, manifest.LateMay}, {0, manifest.LateMay}, {55, manifest.LateMay}, {54, ""}, {55, ""},
		{67, manifest.LateWill}, {66, manifest.LateWill}, {61, manifest.LateWill}, {0, manifest.LateWill}, {60, manifest.LateMay}, {66, manifest.LateMay}, {54, ""}, {0, ""},
	} {
		late, _, _ = spec.Lateness(manifest.Status{Phase: manifest.PhaseRunning, Left: c.left, LeftLow: 0.9 * c.left, LeftHigh: 1.1 * c.left}, late, now)
		if late != c.want {
			t.Errorf("status %d, %g s left: %q, want %q", i, c.left, late, c.want)
		}
	}
	if late, slack, known := spec.Lateness(manifest.Status{}, manifest.LateMay, now.Add(2*time.Minute)); late != manifest.LateHas || slack != -60 || !known {
		t.Errorf("without workers, a minute after the deadline: %q, %g, %t", late, slack, known)
	}
	if late, _, _ = spec.Lateness(manifest.Status{}, manifest.LateHas, now); late == manifest.LateHas {
		t.Error("the deadline has passed after the clock was ahead")
	}
}

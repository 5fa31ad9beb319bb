package coordinator

import (
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/record"
	"ddiff/manifest"
)

// A cap outlasts a clock that was ahead, and a pause by a person or at a budget; the reason is always that of the present pause.
func TestCapBesideOtherPauses(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 23, 50, 0, 0, time.UTC)
	r := runningRunner(t, &now, &strings.Builder{})
	r.s.cfg.Prices, r.s.cfg.Caps = Prices{"": 1}, Caps{"ann": 7}
	must(t, r.save(t.Context(), func(c *record.Campaign) { c.Owner = "ann" }))
	must(t, r.s.cfg.Store.Put(t.Context(), accountFolder+"2026-11/deleted-1.json",
		[]byte(`{"owner": "ann", "name": "deleted-1", "uses": [{"month": "2026-11", "pool": "spot", "device_seconds": 8}]}`)))
	want := func(name string, phase record.Phase, reason string) {
		t.Helper()
		must(t, r.applyWanted(t.Context()))
		if c := r.rec; c.Phase != phase || !strings.Contains(c.Reason, reason) || (reason == "") != (c.Reason == "") || r.queue.paused != (phase == record.PhasePaused) {
			t.Errorf("%s: %s, reason %q, queue paused %t", name, c.Phase, c.Reason, r.queue.paused)
		}
	}
	person := func(w record.Wanted) {
		t.Helper()
		c, err := recordtest.Want(t.Context(), r.s.cfg.Board, r.s.cfg.Store, r.id, w)
		must(t, err)
		r.adopt(c)
	}
	const held = "cost 8 of 7 in 2026-11; it goes on by itself on 2026-12-01"
	want("above the cap", record.PhasePaused, held)
	r.outcomes.ledger.Spend(id(0), 0, record.Use{Month: "2025-01", Pool: "spot", Seconds: 3})
	for budget, share := range map[manifest.Budget]float64{{}: 8.0 / 7, {Seconds: 2}: 1.5, {Seconds: 100, Cost: 2}: 1.5, {Items: 1}: 8.0 / 7} {
		r.rec.Spec.Budget = budget
		r.report(0, 0)
		if got := r.s.gauges.byID[r.id].limit; got != share {
			t.Errorf("budget %+v: a used share of %g, want %g", budget, got, share)
		}
	}
	r.rec.Spec.Budget = manifest.Budget{}
	now = now.Add(time.Hour)
	want("in the next month", record.PhaseRunning, "")
	now = now.Add(-time.Hour)
	want("after the clock was ahead", record.PhasePaused, held)
	r.s.cfg.Caps = Caps{"ann": 6}
	want("with a lower cap", record.PhasePaused, "8 of 6")
	person(record.WantPause)
	want("paused by a person", record.PhasePaused, "")
	r.s.cfg.Caps = Caps{"ann": 60}
	want("paused by a person, with a higher cap", record.PhasePaused, "")
	person(record.WantRun)
	want("resumed", record.PhaseRunning, "")
	must(t, r.pauseBecause(t.Context(), "the environment of worker a fails"))
	want("after a fault", record.PhasePaused, "worker a fails")
	r.s.cfg.Caps = Caps{"ann": 7}
	person(record.WantRun)
	if r.rec.Reason != "" {
		t.Errorf("a resumed campaign has the reason %q of its last pause", r.rec.Reason)
	}
	want("resumed above the cap", record.PhasePaused, held)
}

// What a campaign has used when it ends counts at once, also if it is cancelled, or rejected before its ledger is read.
func TestUsesAtTheEndCount(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	use := func(seconds float64) record.Use {
		return record.Use{Month: "2026-11", Pool: "spot", Seconds: seconds}
	}
	for _, opening := range []bool{false, true} {
		r := runningRunner(t, &now, &strings.Builder{})
		r.s.cfg.Prices, r.s.cfg.Caps = Prices{"": 1}, Caps{"*": 70}
		r.rec.Owner = "*"
		must(t, r.compareCap(t.Context()))
		if r.opening = opening; opening {
			r.status.last.Uses = []record.Use{use(9)}
		} else {
			r.outcomes.ledger.Spend(id(0), 0, use(9))
		}
		must(t, r.storeUses(t.Context()))
		other := board.NewRecord(&r.rec.Spec, board.Order{Owner: "*"}, now.Add(time.Hour))
		for _, of := range []string{"this term", "the next term"} {
			if _, sum, err := r.s.accounts.add(t.Context(), &r.s.cfg, other, nil); err != nil || sum != 9 {
				t.Errorf("opening %t, %s: a cost of %g, %v", opening, of, sum, err)
			}
			r.s.accounts.reset()
		}
	}
}

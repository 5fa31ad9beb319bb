package coordinator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/record"
)

// TestStarts counts starts, parks a campaign at the second one that did not end, and takes starts back.
func TestStarts(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0).UTC()
	r := decidingRunner(t, &now, &strings.Builder{}).onBoard(t)
	died := func(count int, parked bool) {
		t.Helper()
		r.rec = onRecord(t, r, func(c *record.Campaign) {
			c.Start = &record.Start{Count: count, Process: "other", Parked: parked, Coordinator: "b", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
		})
	}
	check := func(what string, want int, suspect bool) {
		t.Helper()
		c, err := board.Read(t.Context(), r.s.cfg.Board, r.id)
		must(t, err)
		got := 0
		if c.Start != nil {
			got = c.Start.Count
		}
		if got != want || r.starts.suspect != suspect || (len(r.s.suspects) == 1) != suspect {
			t.Errorf("%s: %d starts, want %d, suspect %t", what, got, want, r.starts.suspect)
		}
	}
	wantRejected := func(what string) {
		t.Helper()
		var rejected rejection
		err := r.starts.count(t.Context(), false)
		if !errors.As(err, &rejected) || !strings.Contains(err.Error(), "2 coordinators have died") || !strings.Contains(err.Error(), "b at 2026-01-02 03:04:05") {
			t.Errorf("%s: error %v", what, err)
		}
		check(what, 2, false)
	}
	must(t, r.starts.progress(t.Context(), false))
	r.starts.takeBack(t.Context())
	check("nothing to take back", 0, false)
	must(t, r.starts.count(t.Context(), false))
	check("first start", 1, false)
	must(t, r.starts.progress(t.Context(), false))
	check("progress after the first start", 1, false)
	must(t, r.starts.count(t.Context(), false))
	check("a start that was not taken back", 1, false)
	r.starts.takeBack(t.Context())
	check("the first start taken back", 0, false)

	died(1, false)
	must(t, r.starts.count(t.Context(), false))
	check("second start", 2, true)
	r.starts.clearSuspicion()
	must(t, r.starts.count(t.Context(), false))
	check("a second start that was not taken back", 2, true)
	r.starts.takeBack(t.Context())
	check("the second start taken back", 1, false)
	must(t, r.starts.count(t.Context(), false))
	check("the dead coordinator counts", 2, true)
	must(t, r.starts.progress(t.Context(), false))
	check("progress after the second start", 1, false)
	must(t, r.starts.progress(t.Context(), true))
	check("the dataset is read", 0, false)

	must(t, r.starts.count(t.Context(), false))
	died(1, false)
	must(t, r.starts.progress(t.Context(), true))
	r.starts.takeBack(t.Context())
	check("the start of another leader stays", 1, false)

	died(2, false)
	wantRejected("two have died")
	r.rec = onRecord(t, r, func(c *record.Campaign) { c.Phase, c.Wanted = record.PhaseRejected, record.WantCancel })
	wantRejected("nobody has resumed it")
	r.starts.takeBack(t.Context())
	check("a parked campaign", 2, false)
	r.rec = onRecord(t, r, func(c *record.Campaign) { c.Wanted = record.WantRun })
	must(t, r.starts.count(t.Context(), false))
	check("resumed", 1, false)
	died(2, false)
	wantRejected("two have died again")

	r.rec = onRecord(t, r, func(c *record.Campaign) { c.Start = nil })
	must(t, r.starts.count(t.Context(), true))
	check("the dataset was read before", 0, false)
}

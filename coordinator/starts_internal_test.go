package coordinator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ddiff/manifest"
)

// putMark replaces the mark of a runner's campaign.
func putMark(t *testing.T, r *runner, text string) {
	t.Helper()
	must(t, r.s.cfg.Board.Put(t.Context(), manifest.KeyStartPrefix+r.id, []byte(text)))
}

// TestStartMarks counts starts, parks a campaign at the second one that did not end, and takes starts back.
func TestStartMarks(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0).UTC()
	var log strings.Builder
	r := decidingRunner(t, &now, &log).onBoard(t)
	starts := func() int {
		t.Helper()
		mark, revision, err := r.starts.read(t.Context())
		must(t, err)
		if (revision == 0) != (mark.Starts == 0) {
			t.Fatalf("mark %+v at revision %d", mark, revision)
		}
		return mark.Starts
	}
	check := func(what string, wantStarts, wantOwn int, wantSuspect bool) {
		t.Helper()
		if n := starts(); n != wantStarts || r.starts.own != wantOwn || r.starts.suspect != wantSuspect || len(r.s.suspects) != map[bool]int{true: 1}[wantSuspect] {
			t.Errorf("%s: %d starts, own %d, suspect %t", what, n, r.starts.own, r.starts.suspect)
		}
	}
	check("at first", 0, 0, false)
	must(t, r.starts.progress(t.Context(), false))
	r.starts.end(t.Context())
	check("nothing to take back", 0, 0, false)
	must(t, r.countStart(t.Context()))
	check("first start", 1, 1, false)
	must(t, r.starts.progress(t.Context(), false))
	check("progress after the first start", 1, 1, false)
	r.starts.end(t.Context())
	check("the first start taken back", 0, 0, false)

	putMark(t, r, `{"starts":1,"coordinator":"b"}`)
	must(t, r.countStart(t.Context()))
	check("second start", 2, 2, true)
	r.starts.end(t.Context())
	check("the second start taken back", 1, 0, false)
	must(t, r.countStart(t.Context()))
	must(t, r.starts.progress(t.Context(), false))
	check("progress after the second start", 1, 1, false)
	must(t, r.starts.progress(t.Context(), true))
	check("the dataset is read", 0, 0, false)

	putMark(t, r, `{"starts":2,"coordinator":"b","at":"2026-01-02T03:04:05Z"}`)
	var rejected rejection
	for range 2 { // the second time the campaign is parked already
		err := r.countStart(t.Context())
		if !errors.As(err, &rejected) || !strings.Contains(err.Error(), "2 coordinators have died") || !strings.Contains(err.Error(), "b at 2026-01-02 03:04:05") {
			t.Errorf("error %v", err)
		}
		if mark, _, _ := r.starts.read(t.Context()); !mark.Parked || mark.Starts != 2 || r.starts.own != 0 {
			t.Errorf("mark %+v, own %d", mark, r.starts.own)
		}
	}
	r.rec.Phase = manifest.PhaseRejected
	r.rec.Wanted = manifest.WantPause
	if err := r.countStart(t.Context()); !errors.As(err, &rejected) {
		t.Errorf("a parked campaign that nobody has resumed starts: %v", err)
	}
	r.rec.Wanted = manifest.WantRun
	must(t, r.countStart(t.Context()))
	check("resumed", 1, 1, false)
	r.starts.end(t.Context())

	for _, damaged := range []string{`{"starts":-1}`, `{"starts":`} {
		log.Reset()
		putMark(t, r, damaged)
		must(t, r.countStart(t.Context()))
		if !strings.Contains(log.String(), "damaged record of starts") {
			t.Errorf("%s: log %s", damaged, log.String())
		}
		check("after a damaged mark", 1, 1, false)
		r.starts.end(t.Context())
	}
	r.rec.Complete = true
	must(t, r.countStart(t.Context()))
	check("the dataset was read before", 0, 0, false)
}

// TestStartThatCannotBeTakenBack: a board that does not answer makes no dead coordinator of one that lives. The next start in the
// process counts the starts of others only.
func TestStartThatCannotBeTakenBack(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0).UTC()
	var log strings.Builder
	r := decidingRunner(t, &now, &log).onBoard(t)
	start := func(what string, want int) {
		t.Helper()
		if err := r.countStart(t.Context()); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if mark, _, err := r.starts.read(t.Context()); err != nil || mark.Starts != want || r.starts.own != want {
			t.Errorf("%s: %+v on the board, own %d, %v, want %d starts", what, mark, r.starts.own, err, want)
		}
	}
	for range maxStarts + 1 {
		start("no coordinator has died", 1)
		r.starts.own = 0 // the start was not taken back
	}
	start("no coordinator has died", 1)
	r.starts.end(t.Context())
	putMark(t, r, `{"starts":1,"coordinator":"b"}`)
	for range 2 {
		start("one has died", 2)
		r.starts.clearSuspicion()
	}
	r.starts.end(t.Context())
	for range 2 { // the second time without the mark of this process
		if mark, _, err := r.starts.read(t.Context()); err != nil || mark.Starts != 1 {
			t.Errorf("mark %+v, %v, want the start of the coordinator that has died", mark, err)
		}
		r.starts.own = 2
		r.starts.end(t.Context())
	}
	// The marks of others count, also after an outage.
	start("one has died", 2)
	r.starts.clearSuspicion()
	putMark(t, r, `{"starts":2,"coordinator":"c"}`)
	var rejected rejection
	if err := r.countStart(t.Context()); !errors.As(err, &rejected) {
		t.Errorf("two have died: %v", err)
	}
}

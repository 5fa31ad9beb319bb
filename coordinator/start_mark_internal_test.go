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
	if err := r.s.cfg.Board.Put(t.Context(), manifest.KeyStartPrefix+r.id, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// TestStartMarks counts starts, parks a campaign at the second one that did not end, and takes starts back.
func TestStartMarks(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0).UTC()
	var log strings.Builder
	r := decidingRunner(t, &now, &log).onBoard(t)
	starts := func() int {
		t.Helper()
		mark, revision, err := r.readMark(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if (revision == 0) != (mark.Starts == 0) {
			t.Fatalf("mark %+v at revision %d", mark, revision)
		}
		return mark.Starts
	}
	check := func(what string, wantStarts, wantOwn int, wantSuspect bool) {
		t.Helper()
		if n := starts(); n != wantStarts || r.mark.Starts != wantOwn || r.suspect != wantSuspect || len(r.s.suspects) != map[bool]int{true: 1}[wantSuspect] {
			t.Errorf("%s: %d starts, own %+v, suspect %t", what, n, r.mark, r.suspect)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check("at first", 0, 0, false)
	must(r.noteProgress(t.Context()))
	r.unmarkStart(t.Context())
	check("nothing to take back", 0, 0, false)
	must(r.markStart(t.Context()))
	check("first start", 1, 1, false)
	must(r.noteProgress(t.Context()))
	check("progress after the first start", 1, 1, false)
	r.unmarkStart(t.Context())
	check("the first start taken back", 0, 0, false)

	putMark(t, r, `{"starts":1,"coordinator":"b"}`)
	must(r.markStart(t.Context()))
	check("second start", 2, 2, true)
	r.unmarkStart(t.Context())
	check("the second start taken back", 1, 0, false)
	must(r.markStart(t.Context()))
	must(r.noteProgress(t.Context()))
	check("progress after the second start", 1, 1, false)
	r.complete = true
	must(r.noteProgress(t.Context()))
	check("the dataset is read", 0, 0, false)
	r.complete = false

	putMark(t, r, `{"starts":2,"coordinator":"b","at":"2026-01-02T03:04:05Z"}`)
	var rejected rejection
	for range 2 { // the second time the campaign is parked already
		err := r.markStart(t.Context())
		if !errors.As(err, &rejected) || !strings.Contains(err.Error(), "2 coordinators have died") || !strings.Contains(err.Error(), "b at 2026-01-02 03:04:05") {
			t.Errorf("error %v", err)
		}
		if mark, _, _ := r.readMark(t.Context()); !mark.Parked || mark.Starts != 2 || r.mark.Starts != 0 {
			t.Errorf("mark %+v, own %+v", mark, r.mark)
		}
	}
	r.rec.Phase = manifest.PhaseRejected
	r.rec.Wanted = manifest.WantPause
	if err := r.markStart(t.Context()); !errors.As(err, &rejected) {
		t.Errorf("a parked campaign that nobody has resumed starts: %v", err)
	}
	r.rec.Wanted = manifest.WantRun
	must(r.markStart(t.Context()))
	check("resumed", 1, 1, false)
	r.unmarkStart(t.Context())

	for _, damaged := range []string{`{"starts":-1}`, `{"starts":`} {
		log.Reset()
		putMark(t, r, damaged)
		must(r.markStart(t.Context()))
		if !strings.Contains(log.String(), "damaged record of starts") {
			t.Errorf("%s: log %s", damaged, log.String())
		}
		check("after a damaged mark", 1, 1, false)
		r.unmarkStart(t.Context())
	}
	r.rec.Complete = true
	must(r.markStart(t.Context()))
	check("the dataset was read before", 0, 0, false)
}

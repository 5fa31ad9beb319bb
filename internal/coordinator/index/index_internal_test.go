package index

import (
	"strings"
	"testing"
	"time"

	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/record"
	"ddiff/storage"
)

var must = boardtest.Must

func TestIndexKeyRoundTrip(t *testing.T) {
	day := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, e := range []Entry{
		{ID: "night-12345678", Number: 0, State: Open, Output: OutputDigest("out")},
		{ID: "night-12345678", Number: 1234567, State: Deleting, Output: OutputDigest("out")},
		{ID: "night-12345678", Number: 3, State: Deleting, Output: OutputDigest("out"), Results: true},
		{ID: strings.Repeat("n", 40) + "-12345678", Number: 2, State: Archived, Output: OutputDigest("out/"), Row: Row{
			Phase: record.PhaseCancelled, Priority: record.PriorityHigh, Weight: 1000,
			Counts:    record.Counts{Items: 1111000005, Pending: 5, Done: 1e9, Failed: 1e8, Dead: 1e7, Cancelled: 1e6},
			Submitted: day, Finished: day.Add(time.Hour), Archived: day.Add(2 * time.Hour),
			Seconds: 1e9, Cost: 1234567.891,
		}},
		{ID: "dear-12345678", Number: 1, State: Archived, Output: OutputDigest("out"), Row: Row{ // a million items of ten seconds at the highest price
			Phase: record.PhaseFinished, Priority: record.PriorityLow, Weight: 1, Submitted: day, Finished: day, Archived: day, Seconds: 1e7, Cost: 1e16,
		}},
	} {
		if err := storage.CheckKey(e.Key()); err != nil {
			t.Error(err)
		}
		if got, ok := ParseKey(e.Key()); !ok || got != e {
			t.Errorf("%s is read as %+v, %v; want %+v", e.Key(), got, ok, e)
		}
	}
	if e, ok := ParseKey(Prefix + "a.1.archived.b.finished.normal.1.2.3.4.5.6.7.8.9.0.0"); !ok || e.Row.Counts.Pending != 0 {
		t.Errorf("fewer items than outcomes: %+v, %t", e, ok)
	}
	for _, key := range []string{
		KeyComplete, "campaigns/a/campaign.json", Prefix + "a.1.unknown.b", Prefix + "a.x.open.b", Prefix + "a.-1.open.b",
		Prefix + ".1.open.b", Prefix + "a.1.archived.b", Prefix + "a.1.archived.b.finished.normal.1.2.3.4.5.6.7.8.9.0.x",
	} {
		if e, ok := ParseKey(key); ok {
			t.Errorf("%s is read as %+v", key, e)
		}
	}
}

// The newest entry counts; of two entries with one number, the entry that permits less.
func TestIndexOrder(t *testing.T) {
	ordered := []Entry{
		{Number: 0, State: Archived}, {Number: 0, State: Open}, {Number: 0, State: Deleting}, {Number: 1, State: Archived},
	}
	for i, a := range ordered {
		for j, b := range ordered {
			if a.supersedes(b) != (i > j) {
				t.Errorf("%+v supersedes %+v: %v", a, b, i <= j)
			}
		}
	}
}

// An ended entry becomes open with the next number; an open one stays; a deletion refuses.
func TestIndexOpen(t *testing.T) {
	t.Parallel()
	c := &record.Campaign{ID: "c", Output: "o"}
	s, err := storage.NewDir(t.TempDir())
	must(t, err)
	x := Index{s}
	for number := range 2 {
		for range 2 {
			must(t, x.Open(t.Context(), c))
			e, err := x.Newest(t.Context(), "c")
			if err != nil || e.Number != 2*number || e.State != Open || e.Output != OutputDigest("o") {
				t.Errorf("entry %+v, %v", e, err)
			}
		}
		row := Row{Phase: record.PhaseFinished, Priority: record.PriorityLow}
		must(t, x.Add(t.Context(), Entry{ID: "c", Number: 2*number + 1, State: Archived, Output: "o", Row: row}))
	}
	must(t, x.Add(t.Context(), Entry{ID: "c", Number: 4, State: Deleting, Output: "o"}))
	if err := x.Open(t.Context(), c); err != ErrDeleting { //nolint:errorlint // exactly this one
		t.Errorf("error %v", err)
	}
}

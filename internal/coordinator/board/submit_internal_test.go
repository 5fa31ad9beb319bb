package board

import (
	"errors"
	"testing"

	"ddiff/internal/record"
	"ddiff/manifest"
)

// Two campaigns with one operator path need one file; files of other paths say nothing.
func TestSameOperators(t *testing.T) {
	t.Parallel()
	c := &record.Campaign{Operators: []record.OperatorFile{{Path: "a", SHA256: "1"}, {Path: "b", SHA256: "2"}}}
	for _, file := range []struct {
		path, digest string
		refused      bool
	}{{"a", "1", false}, {"b", "2", false}, {"a", "2", true}, {"b", "1", true}, {"c", "1", false}} {
		err := sameOperators(c, []record.OperatorFile{{Path: file.path, SHA256: file.digest}})
		if errors.Is(err, ErrRefused) != file.refused || (err != nil) != file.refused {
			t.Errorf("%+v: %v", file, err)
		}
	}
}

// Another pool changes no item.
func TestSameItems(t *testing.T) {
	t.Parallel()
	spec := manifest.Default()
	moved := *spec
	moved.Pool = "gpu"
	if !sameItems(*spec, moved) {
		t.Error("another pool is another campaign")
	}
}

// A second submission needs the same prior; a digest that is not known says nothing.
func TestSamePrior(t *testing.T) {
	t.Parallel()
	begun := &record.Campaign{Prior: record.PriorFile{SHA256: "1", Name: "p"}}
	for _, c := range []struct {
		campaign *record.Campaign
		digest   string
		refused  bool
	}{
		{begun, "1", false}, {begun, "2", true}, {begun, "", false},
		{&record.Campaign{Prior: record.PriorFile{SHA256: "1"}}, "2", true}, {&record.Campaign{Prior: record.PriorFile{SHA256: "1"}}, "1", false},
		{&record.Campaign{}, "2", false},
	} {
		err := samePrior(c.campaign, c.digest)
		if errors.Is(err, ErrRefused) != c.refused || (err != nil) != c.refused {
			t.Errorf("%+v, digest %q: %v", c.campaign, c.digest, err)
		}
	}
}

// TestActive has every combination of phase and wish.
func TestActive(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		phase  record.Phase
		wanted record.Wanted
		want   bool
	}{
		{record.PhaseQueued, record.WantPause, true},
		{record.PhaseRunning, record.WantCancel, true},
		{record.PhaseFinished, record.WantRun, false},
		{record.PhaseFinished, record.WantCancel, false},
		{record.PhaseRejected, record.WantRun, true},
		{record.PhaseRejected, record.WantPause, false},
		{record.PhaseRejected, record.WantCancel, true},
		{record.PhaseRejected, record.WantCancelNow, true},
		{record.PhaseCancelled, record.WantRun, true},
		{record.PhaseCancelled, record.WantCancel, false},
		{record.PhaseCancelled, record.WantCancelNow, false},
	} {
		if got := Active(&record.Campaign{Phase: c.phase, Wanted: c.wanted}); got != c.want {
			t.Errorf("%s, %s: active %t", c.phase, c.wanted, got)
		}
	}
}

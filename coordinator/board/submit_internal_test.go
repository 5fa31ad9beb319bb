package board

import (
	"errors"
	"testing"

	"ddiff/manifest"
)

// Two campaigns with one operator path need one file; files of other paths say nothing.
func TestSameOperators(t *testing.T) {
	t.Parallel()
	c := &manifest.Campaign{Operators: []manifest.OperatorFile{{Path: "a", SHA256: "1"}, {Path: "b", SHA256: "2"}}}
	for _, file := range []struct {
		path, digest string
		refused      bool
	}{{"a", "1", false}, {"b", "2", false}, {"a", "2", true}, {"b", "1", true}, {"c", "1", false}} {
		err := sameOperators(c, []manifest.OperatorFile{{Path: file.path, SHA256: file.digest}})
		if errors.Is(err, ErrRefused) != file.refused || (err != nil) != file.refused {
			t.Errorf("%+v: %v", file, err)
		}
	}
}

// A second submission needs the same pool.
func TestSamePool(t *testing.T) {
	t.Parallel()
	spec := manifest.Default()
	moved := *spec
	moved.Pool = "gpu"
	c := &manifest.Campaign{Spec: *spec}
	if err := samePool(c, "gpu"); !errors.Is(err, ErrRefused) || samePool(c, "") != nil || !sameItems(*spec, moved) {
		t.Errorf("another pool: %v", err)
	}
}

// A second submission needs the same prior; a digest that is not known says nothing.
func TestSamePrior(t *testing.T) {
	t.Parallel()
	begun := &manifest.Campaign{Prior: manifest.PriorFile{SHA256: "1"}, PriorSHA256: "1"}
	for _, c := range []struct {
		campaign *manifest.Campaign
		digest   string
		refused  bool
	}{
		{begun, "1", false}, {begun, "2", true}, {begun, "", false},
		{&manifest.Campaign{PriorSHA256: "1"}, "2", true}, {&manifest.Campaign{PriorSHA256: "1"}, "1", false},
		{&manifest.Campaign{}, "2", false},
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
		phase  manifest.Phase
		wanted manifest.Wanted
		want   bool
	}{
		{manifest.PhaseQueued, manifest.WantPause, true},
		{manifest.PhaseRunning, manifest.WantCancel, true},
		{manifest.PhaseFinished, manifest.WantRun, false},
		{manifest.PhaseFinished, manifest.WantCancel, false},
		{manifest.PhaseRejected, manifest.WantRun, true},
		{manifest.PhaseRejected, manifest.WantPause, false},
		{manifest.PhaseRejected, manifest.WantCancel, true},
		{manifest.PhaseRejected, manifest.WantCancelNow, true},
		{manifest.PhaseCancelled, manifest.WantRun, true},
		{manifest.PhaseCancelled, manifest.WantCancel, false},
		{manifest.PhaseCancelled, manifest.WantCancelNow, false},
	} {
		if got := Active(&manifest.Campaign{Phase: c.phase, Wanted: c.wanted}); got != c.want {
			t.Errorf("%s, %s: active %t", c.phase, c.wanted, got)
		}
		if !Active(&manifest.Campaign{Phase: c.phase, Wanted: c.wanted, Commands: []manifest.Command{{ID: "1"}}}) {
			t.Errorf("%s with a command: not active", c.phase)
		}
	}
}

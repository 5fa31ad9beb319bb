package cluster

import (
	"bytes"
	"strings"
	"testing"

	"ddiff/internal/cli"
	"ddiff/manifest"
)

// TestStatusOfChangedDataset prints the problem and the warning of a campaign, each in one line.
func TestStatusOfChangedDataset(t *testing.T) {
	t.Parallel()
	st := manifest.Status{Phase: manifest.PhaseRunning, Problem: "waiting for the dataset", Warning: "the dataset changed"}
	var out bytes.Buffer
	err := writeStatus(&out, manifest.CampaignStatus{Campaign: &manifest.Campaign{Phase: manifest.PhaseRunning}, Status: st})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"\nproblem    waiting for the dataset\n", "\nwarning    the dataset changed\n"} {
		if strings.Count(out.String(), line) != 1 {
			t.Errorf("the status lacks %q:\n%s", line, out.String())
		}
	}
	out.Reset()
	err = writeStatus(&out, manifest.CampaignStatus{Campaign: &manifest.Campaign{ID: "night", Phase: manifest.PhaseRejected, Reason: "cut"}})
	if want := "phase      rejected: cut\nremedy     mend the cause, then: ddiff resume night\n"; err != nil || !strings.Contains(out.String(), want) {
		t.Errorf("the status lacks %q: %v\n%s", want, err, out.String())
	}
	out.Reset()
	writeWarning(&out, st, manifest.Status{}, false, false)
	writeWarning(&out, st, st, false, false)
	if got := out.String(); got != "warning: the dataset changed\n" {
		t.Errorf("watch prints %q", got)
	}
}

// TestFailuresOfWatch: a campaign with failed items ends watch with an error that names the place of the reasons.
func TestFailuresOfWatch(t *testing.T) {
	t.Parallel()
	s := manifest.CampaignStatus{
		Campaign: &manifest.Campaign{ID: "night-12345678", Output: "shared", Phase: manifest.PhaseFinished},
		Status:   manifest.Status{Phase: manifest.PhaseFinished, Counts: manifest.Counts{Items: 3, Done: 1, Failed: 2}},
	}
	var out bytes.Buffer
	err := endOf(s, false, &out)
	if out.String() != "done=1 failed=2 dead=0 lost=0\n" || cli.ExitCode(err) != cli.ExitIncomplete {
		t.Errorf("watch prints %q and ends with %v", out.String(), err)
	}
	if want := "2 failed, 0 dead; the reasons are in shared/failures/night-12345678 of the store"; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("the error is %q, want %q at its end", err, want)
	}
}

// TestEndOfWatch: a campaign that was resumed after its end has not ended, although its phase is still the old one.
func TestEndOfWatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		phase, status manifest.Phase
		wanted        manifest.Wanted
		want          bool
	}{
		{manifest.PhaseFinished, manifest.PhaseFinished, manifest.WantRun, true},
		{manifest.PhaseFinished, manifest.PhaseRunning, manifest.WantRun, false},
		{manifest.PhaseCancelled, manifest.PhaseCancelled, manifest.WantCancel, true},
		{manifest.PhaseCancelled, manifest.PhaseCancelled, manifest.WantCancelNow, true},
		{manifest.PhaseCancelled, manifest.PhaseCancelled, manifest.WantRun, false},
		{manifest.PhaseRejected, manifest.PhaseRejected, manifest.WantPause, true},
		{manifest.PhaseRejected, manifest.PhaseRejected, manifest.WantRun, false},
		{manifest.PhaseRunning, manifest.PhaseRunning, manifest.WantRun, false},
	} {
		got := hasEnded(manifest.CampaignStatus{
			Campaign: &manifest.Campaign{Phase: c.phase, Wanted: c.wanted}, Status: manifest.Status{Phase: c.status},
		})
		if got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}

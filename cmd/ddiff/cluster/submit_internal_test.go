package cluster

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/manifest"
)

// TestSubmittedBefore: the line of a second submission names the state of the campaign, and the command that continues it.
func TestSubmittedBefore(t *testing.T) {
	t.Parallel()
	recalled := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		phase    manifest.Phase
		wanted   manifest.Wanted
		recalled time.Time
		want     string
	}{
		{manifest.PhaseRunning, manifest.WantRun, time.Time{}, "now running"},
		{manifest.PhaseRunning, manifest.WantRun, recalled, "now running"},
		{manifest.PhaseRunning, manifest.WantCancel, time.Time{}, "now running, cancel requested"},
		{manifest.PhaseRunning, manifest.WantPause, time.Time{}, "now running; continue it with: ddiff resume night-12345678"},
		{manifest.PhasePaused, manifest.WantPause, time.Time{}, "now paused; continue it with: ddiff resume night-12345678"},
		{manifest.PhasePaused, manifest.WantRun, time.Time{}, "now paused, resume requested"},
		{manifest.PhaseFinished, manifest.WantRun, time.Time{}, "now finished; run failed or dead items again with: ddiff retry night-12345678 --failed --dead"},
		{manifest.PhaseFinished, manifest.WantRun, recalled, "now finished, back from the archive; run failed or dead items again with: ddiff retry night-12345678 --failed --dead"},
		{manifest.PhaseCancelled, manifest.WantCancel, recalled, "now cancelled, back from the archive; continue it with: ddiff resume night-12345678"},
		{manifest.PhaseCancelled, manifest.WantRun, time.Time{}, "now cancelled, resume requested"},
		{manifest.PhaseRejected, manifest.WantPause, time.Time{}, "now rejected; continue it with: ddiff resume night-12345678"},
	} {
		var out bytes.Buffer
		record := api.Submitted{ID: "night-12345678", Phase: c.phase, Wanted: c.wanted, Recalled: c.recalled}
		if err := printSubmitted(&out, record, false); err != nil {
			t.Fatal(err)
		}
		if want := "night-12345678  (submitted before, " + c.want + ")\n"; out.String() != want {
			t.Errorf("phase %s, wanted %s: %q, want %q", c.phase, c.wanted, out.String(), want)
		}
	}
}

// TestOutputNote: a submission says where the results go, unless the user has chosen this folder or none.
func TestOutputNote(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, flag, output, want string }{
		{"", "", "night-12345678", ""},
		{"", "maps", "maps", ""},
		{"output: out/night", "maps", "maps", ""},
		{"output: out/night", "", "night-12345678", "folder night-12345678 of the cluster's store, not to out/night; --output chooses"},
		{"", "maps", "night-12345678", "folder night-12345678 of the cluster's store, not to maps; --output chooses"}, // submitted before
	} {
		spec, err := manifest.Parse("night.yaml", []byte("dataset: {path: photos}\n"+c.file), "/")
		if err != nil {
			t.Fatal(err)
		}
		note := outputNote(spec, c.flag, api.Submitted{Output: c.output})
		if !strings.Contains(note, c.want) || (note == "") != (c.want == "") {
			t.Errorf("%q and --output %q: note %q, want %q", c.file, c.flag, note, c.want)
		}
	}
}

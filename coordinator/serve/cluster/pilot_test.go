package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/coordinator/board"
	"ddiff/coordinator/index"
	"ddiff/manifest"
)

// The estimate of a check comes from results of campaigns with the same plans, also archived ones; without one it is unknown.
func TestEstimate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	photos := t.TempDir()
	for i := range 6 {
		must(t, os.WriteFile(filepath.Join(photos, fmt.Sprintf("%d.png", i)), []byte("x"), 0o644))
	}
	beat := []byte(`{"name":"gpu-1","at":"` + time.Now().UTC().Format(time.RFC3339) + `"}`)
	must(t, f.board.Put(t.Context(), manifest.KeyWorkerPrefix+"gpu-1", beat))
	check := func(more string) *api.Estimate {
		t.Helper()
		out, err := client(t, f.serve(f.open(), false), "").Check(t.Context(), []byte("name: next\ndataset: {path: "+photos+"}\n"+more), api.Order{})
		must(t, err)
		if len(out.Problems) > 0 || out.Estimate == nil {
			t.Fatalf("%s: %+v", more, out)
		}
		return out.Estimate
	}
	unknown := func(more string, want ...string) {
		t.Helper()
		if e := check(more); e.Seconds != nil || e.Cost != nil || !slices.Equal(e.Unknown, want) {
			t.Errorf("%s: %+v, want unknown %v", more, e, want)
		}
	}
	known := func(more string, seconds float64, samples int, campaign string) {
		t.Helper()
		e := check(more)
		if e.Seconds == nil || *e.Seconds != seconds || e.Cost == nil || *e.Cost != seconds/2 || e.Samples != samples || !slices.Equal(e.Campaigns, []string{campaign}) || e.Workers != 1 {
			t.Errorf("%s: %+v, want %g device-seconds by %d results of %s", more, e, seconds, samples, campaign)
		}
	}
	id := f.campaign("night", "ann", func(c *manifest.Campaign) { c.Items = 8 })
	items := f.windows(id, 8, 8) // half of them denoise
	unknown("tasks: [denoise]", "denoise by ddiff")
	for i, item := range items[:6] {
		f.result(id, item, i) // of 2 s
	}
	known("tasks: [denoise]", 12, 3, id)
	known("tasks: [denoise]\nruns: 2\nsigma: 0.1", 24, 3, id)
	unknown("tasks: [denoise, hdr]", "hdr by ddiff") // its items are not of the campaign's file
	unknown("tasks: [denoise]\nsteps: 7", "denoise by ddiff")
	unknown("tasks: [denoise]\nmethods: [ddiff, dps]", "denoise by dps")
	unknown("tasks: [{name: denoise, steps: 7}, hdr]", "denoise by ddiff", "hdr by ddiff")

	record, err := board.Read(t.Context(), f.board, id)
	must(t, err)
	must(t, board.Store(t.Context(), f.store, record))
	must(t, index.New(f.store).Add(t.Context(), index.Entry{ID: id, Number: 1, State: index.Archived, Output: index.OutputDigest(record.Output), Row: index.Row{
		Phase: manifest.PhaseFinished, Priority: manifest.PriorityNormal, Weight: 1,
	}}))
	must(t, f.board.Delete(t.Context(), manifest.KeyCampaignPrefix+id))
	known("tasks: [denoise]", 12, 3, id)
}

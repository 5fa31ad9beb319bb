package main

import (
	"testing"

	"ddiff/coordinator/report"
	"ddiff/coordinator/tune"
	"ddiff/manifest"
)

// TestTuneCountsFailedRuns: a setting that restores an image well in one run and fails in another loses to a setting that
// never fails.
func TestTuneCountsFailedRuns(t *testing.T) {
	t.Parallel()
	images := []tune.Image{{Name: "a", SHA256: "aa"}, {Name: "b", SHA256: "bb"}, {Name: "c", SHA256: "cc"}}
	race, err := tune.NewRace([]tune.Entrant{{Key: "flaky"}, {Key: "steady"}}, images)
	if err != nil {
		t.Fatal(err)
	}
	c := &contest{races: []*tune.Race{race}, byKey: map[string]*tunedCell{}}
	tuning := &tuning{
		tuningPlan: &tuningPlan{contests: []*contest{c}}, objective: tune.ObjectivePSNR, rule: report.RuleMean,
		results: map[solution][]manifest.Result{},
	}
	for key, psnr := range map[string]float64{"flaky": 30, "steady": 20} {
		c.byKey[key] = &tunedCell{settings: key, spent: make([]int, 1)}
		for _, img := range images {
			for run := range 2 {
				r := manifest.Result{Outcome: manifest.OutcomeDone, Metrics: manifest.Metrics{PSNR: new(psnr)}}
				r.Item = manifest.Item{Name: img.Name, Run: run, Image: &manifest.Source{SHA256: img.SHA256}}
				if key == "flaky" && img.Name == "a" && run == 1 {
					r.Outcome, r.Metrics = manifest.OutcomeFailed, manifest.Metrics{}
				}
				s := solution{c, key, img.SHA256}
				tuning.results[s] = append(tuning.results[s], r)
			}
		}
	}
	for keys, _ := race.Next(); len(keys) > 0; keys, _ = race.Next() {
		if err := tuning.settle(); err != nil {
			t.Fatal(err)
		}
	}
	if key, ok := race.Winner(); key != "steady" || !ok {
		t.Errorf("the winner is %q, %v; want the setting without a failure", key, ok)
	}
	last := race.Standings()[1]
	if last.State != tune.StateFailed || len(last.Failed) != 1 || last.Failed[0] != "a" {
		t.Errorf("standing %+v, want one failure", last)
	}
}

package tune

import (
	"testing"

	"ddiff/internal/report/selection"
	"ddiff/internal/restore/metric"
	"ddiff/internal/tune"
	"ddiff/restore/item"
)

// TestTuneCountsFailedRuns: a setting that restores an image well in one run and fails in another loses to a setting that
// never fails, and a test image with a failed run has no figures.
func TestTuneCountsFailedRuns(t *testing.T) {
	t.Parallel()
	images := []tune.Image{{Name: "a", SHA256: "aa"}, {Name: "b", SHA256: "bb"}, {Name: "c", SHA256: "cc"}}
	race := tune.NewRace([]tune.Entrant{{Key: "flaky"}, {Key: "steady"}}, images)
	test := tune.Image{Name: "d", SHA256: "dd"}
	c := &contest{races: []*tune.Race{race}, byKey: map[string]*tunedCell{}, images: map[string]tune.Image{"dd": test}}
	folds := []tune.Fold{{Tune: images, Test: []tune.Image{test}}}
	tuning := &tuning{
		tuningPlan: &tuningPlan{contests: []*contest{c}, folds: folds}, objective: metric.NamePSNR, rule: selection.Mean,
		results: map[solution][]item.Result{},
	}
	for key, psnr := range map[string]float64{"flaky": 30, "steady": 20} {
		c.byKey[key] = &tunedCell{settings: key, spent: make([]int, 1)}
		c.cells = append(c.cells, c.byKey[key])
		for _, img := range append(images, test) {
			for run := range 2 {
				r := item.Result{Outcome: item.OutcomeDone, Metrics: item.Metrics{"psnr": psnr}}
				r.Item = item.Item{Name: img.Name, Run: run, Image: &item.Source{SHA256: img.SHA256}}
				if (key == "flaky" && img.Name == "a" || img.Name == "d") && run == 1 {
					r.Outcome, r.Metrics = item.OutcomeFailed, item.Metrics{}
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
	tests, _, err := tuning.tests()
	if err != nil || len(tests) != 1 || len(tests[0].Images) != 0 || len(tests[0].Failed) != 1 || tests[0].Failed[0] != "d" {
		t.Errorf("tests %+v, error %v, want a failure on d", tests, err)
	}
}

// TestTuneNamesImagesWithoutTruth: PSNR has no smallest size, so that the truth is missing.
func TestTuneNamesImagesWithoutTruth(t *testing.T) {
	t.Parallel()
	images := []tune.Image{{Name: "a", SHA256: "aa"}, {Name: "b", SHA256: "bb"}}
	c := &contest{races: []*tune.Race{tune.NewRace([]tune.Entrant{{Key: "x"}, {Key: "y"}}, images)}}
	tuning := &tuning{tuningPlan: &tuningPlan{contests: []*contest{c}}, objective: metric.NamePSNR, rule: selection.First, results: map[solution][]item.Result{}}
	for _, key := range []string{"x", "y"} {
		for _, img := range images {
			r := item.Result{Outcome: item.OutcomeDone, Item: item.Item{Name: img.Name, Image: &item.Source{SHA256: img.SHA256}}}
			tuning.results[solution{c, key, img.SHA256}] = []item.Result{r}
		}
	}
	const want = "tune: objective is undefined: a has no psnr, because it has no truth; use another --objective, such as closest_to_noise"
	if err := tuning.settle(); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

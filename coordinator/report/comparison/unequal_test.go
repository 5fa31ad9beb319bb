package comparison_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"ddiff/coordinator/report/aggregate"
	"ddiff/coordinator/report/comparison"
	"ddiff/coordinator/report/reporttest"
	"ddiff/coordinator/report/result"
	"ddiff/coordinator/report/selection"
	"ddiff/coordinator/report/sweep"
	"ddiff/coordinator/tune"
	"ddiff/manifest"
	"ddiff/restore/method"
)

// TestCompareNamesUnequalConditions: prior, precision, number of runs and tuning are named with the values of both sides, where they
// matter. Methods, settings and other tasks are not.
func TestCompareNamesUnequalConditions(t *testing.T) {
	t.Parallel()
	used := func(precision string) func(*manifest.Result) {
		return func(r *manifest.Result) { r.Runtime.Precision = precision }
	}
	prior := func(r *manifest.Result) { r.Item.Prior = strings.Repeat("cd", 32) }
	settings := func(r *manifest.Result) { r.Item.Solver = json.RawMessage(`{"steps":7}`) }
	again := func(r *manifest.Result) { r.Item.Run = 1 }
	base := solvedBy(t, "ddiff", 0, used("fp32"))
	mixed := solvedBy(t, "ddiff", 0, used("fp32"))
	mixed[0].Runtime.Precision = "bf16"
	twice := slices.Concat(base, solvedBy(t, "ddiff", 1, used("fp32"), again))
	for _, tt := range []struct {
		name string
		b    []manifest.Result
		rule selection.Rule
		want []string
	}{
		{"methods and settings", solvedBy(t, "diffpir", 1, used("fp32"), settings), "", nil},
		{"prior", solvedBy(t, "diffpir", 1, used("fp32"), prior), "", []string{"note: unequal prior: abababab in A, cdcdcdcd in B (measurements: 10)"}},
		{"precision", solvedBy(t, "diffpir", 1, used("bf16")), "", []string{"note: unequal precision: float32 in A, bfloat16 in B (measurements: 10)"}},
		{"precision of one item", mixed, "", []string{"note: unequal precision: float32 in A, bfloat16 in B (measurements: 1)"}},
		{"unknown precision", solvedBy(t, "diffpir", 1), "", nil},
		{"runs, of which the first counts", twice, "", nil},
		{"runs", twice, selection.Mean, []string{"note: unequal runs: 1 in A, 2 in B (measurements: 10)"}},
		{"several", solvedBy(t, "diffpir", 1, used("bf16"), prior), "", []string{
			"note: unequal prior: abababab in A, cdcdcdcd in B (measurements: 10)",
			"note: unequal precision: float32 in A, bfloat16 in B (measurements: 10)",
		}},
	} {
		v, err := comparison.Compare(reporttest.Stream(base), reporttest.Stream(tt.b), nil, tt.rule, "")
		reporttest.Must(t, err)
		if got := notesOf(t, v); !slices.Equal(got, tt.want) {
			t.Errorf("%s: notes %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestCompareNamesTuning: settings that one side chose with a compared image are named, and those that both sides chose with it are not.
func TestCompareNamesTuning(t *testing.T) {
	t.Parallel()
	a, b := solvedBy(t, "diffpir", 1), solvedBy(t, "ddiff", 0)
	tuned := func(results ...manifest.Result) *aggregate.Tunings {
		store := reporttest.NewMemory()
		for _, r := range results {
			cell, err := sweep.CellOf(&r.Item)
			reporttest.Must(t, err)
			key, data, err := tune.Record{Folds: []tune.RecordFold{{
				Fold:  tune.Fold{Tune: []tune.Image{{SHA256: r.Item.Image.SHA256}}},
				Races: []tune.RecordRace{{Task: cell.Task, Method: cell.Method, Chosen: cell.Settings, Cells: []tune.RecordedCell{{Solver: r.Item.Solver}, {Solver: r.Item.Solver}}}},
			}}}.Encode()
			reporttest.Must(t, err)
			reporttest.Must(t, store.Put(t.Context(), key, data))
		}
		all, err := aggregate.ReadTunings(t.Context(), []result.Output{{Store: store}}, method.Set{})
		reporttest.Must(t, err)
		return all
	}
	for _, tt := range []struct {
		name    string
		tunings *aggregate.Tunings
		want    []string
	}{
		{"neither", tuned(), nil},
		{"both", tuned(a[0], b[0]), nil},
		{"one", tuned(a[0]), []string{"note: unequal tuning: with the same image in A, without the image in B (measurements: 1)"}},
	} {
		v, err := comparison.Compare(reporttest.Stream(a), reporttest.Stream(b), nil, "", "")
		reporttest.Must(t, err)
		v.AddTunings(tt.tunings)
		if got := notesOf(t, v); !slices.Equal(got, tt.want) {
			t.Errorf("%s: notes %q, want %q", tt.name, got, tt.want)
		}
	}
}

// notesOf returns the notes of the text, as many as comparison.json has.
func notesOf(t *testing.T, v *comparison.Versus) (notes []string) {
	t.Helper()
	var text bytes.Buffer
	reporttest.Must(t, v.WriteText(&text, 0))
	for line := range strings.Lines(text.String()) {
		if strings.HasPrefix(line, "note: ") {
			notes = append(notes, strings.TrimSuffix(line, "\n"))
		}
	}
	data, err := json.Marshal(v)
	reporttest.Must(t, err)
	var stored comparison.Versus
	if err := json.Unmarshal(data, &stored); err != nil || len(stored.Unequal) != len(notes) {
		t.Errorf("%d conditions in JSON, error %v; %d notes", len(stored.Unequal), err, len(notes))
	}
	return notes
}

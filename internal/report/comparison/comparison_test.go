package comparison_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/comparison"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/result"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/sweep"
	"ddiff/internal/tune"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/parameter"
)

// solvedBy has five images of two tasks with the given gains in PSNR.
func solvedBy(t *testing.T, method string, gain float64, change ...func(*item.Result)) []item.Result {
	t.Helper()
	var out []item.Result
	for k, task := range []string{"motion_deblur", "hdr"} {
		for i := range 5 {
			psnr := 20 + float64(i) + gain*float64(i+1)*float64(k+1)
			out = append(out, reporttest.Result(t, task, method, fmt.Sprintf("image%d", i), 0, append([]func(*item.Result){reporttest.Scored(psnr, 15, 0.5, 0)}, change...)...))
		}
	}
	return out
}

func TestCompare(t *testing.T) {
	t.Parallel()
	a, b := solvedBy(t, "diffpir", 0.25), solvedBy(t, "ddiff", 0)
	rename := func(r *item.Result) { r.Item.Name = "other " + r.Item.Name } // names do not pair, measurements do
	for i := range b {
		rename(&b[i])
	}
	v, err := comparison.Compare(reporttest.Stream(a), reporttest.Stream(b), nil, "", "")
	reporttest.Must(t, err)
	if len(v.Rows) != 2 || len(v.Images) != 10 || len(v.OnlyA)+len(v.OnlyB)+len(v.Unequal) != 0 {
		t.Fatalf("%+v", v)
	}
	// Differences 0.25 … 1.25: mean 0.75, s = 0.39528471, half = 2.77644511 * s / sqrt(5) = 0.49081080.
	r := v.Rows[0]
	if r.A.Method != "diffpir" || r.B.Method != "ddiff" || r.Difference.N != 5 || !(math.Abs(r.Difference.Mean-0.75) <= 1e-12) ||
		!(math.Abs(*r.Difference.HalfWidth-0.49081080) <= 1e-7) || !(math.Abs(r.MeanA.Mean-22.75) <= 1e-12) {
		t.Errorf("row %+v ± %g", r, *r.Difference.HalfWidth)
	}
	// Five differences of one sign: p = 2/2^5; twice that after Holm's correction for two tasks.
	if *r.P != 0.0625 || *r.PHolm != 0.125 {
		t.Errorf("p = %g, after Holm %g", *r.P, *r.PHolm)
	}
	if d := v.Images[0]; d.Task != "hdr" || d.Image != "image4" || !(math.Abs(d.Difference()-2.5) <= 1e-12) {
		t.Errorf("largest difference %+v", d)
	}
	var suspect bytes.Buffer
	warned := func(r *item.Result) { r.Warnings = []item.Warning{{Code: "flat", Text: "flat"}} }
	half, err := comparison.Compare(reporttest.Stream(append(solvedBy(t, "diffpir", 0.25, warned)[:5:5], a[5:]...)), reporttest.Stream(b), nil, "", "")
	reporttest.Must(t, err)
	reporttest.Must(t, half.WriteText(&suspect, 0))
	if s := suspect.String(); strings.Count(s, " †") != 1 || !strings.Contains(s, "\n† At least half") || !strings.Contains(s, "]       -         -") || !strings.Contains(s, "0.125") ||
		!strings.Contains(s, "No p value can be below 0.12 here (n = 5, tests: 2)") {
		t.Errorf("one suspect problem:\n%s", s)
	}
	var text bytes.Buffer
	if err := v.WriteText(&text, 1); err != nil || !strings.Contains(text.String(), "[+0.26, +1.24]") || !strings.Contains(text.String(), "+2.50 dB  image4") {
		t.Errorf("error %v, text:\n%s", err, text.String())
	}
}

func TestCompareRefuses(t *testing.T) {
	t.Parallel()
	base := solvedBy(t, "ddiff", 0)
	otherSettings := solvedBy(t, "ddiff", 1, func(r *item.Result) {
		r.Item.Solver, r.Item.Precision = json.RawMessage(`{"steps":7}`), "float16"
	})
	for _, tt := range []struct {
		name string
		b    []item.Result
		rule selection.Rule
		want string
	}{
		{"an oracle", base, selection.BestPSNR, "rank an oracle"},
		{"other measurements", solvedBy(t, "ddiff", 0, func(r *item.Result) { r.Item.Seed++ }), "", "motion_deblur σ=0.05 128x128 center_crop: different measurements: 5 of A, 5 of B, 0 in common; are images, seed"},
		{"fewer measurements", base[1:], "", "5 of A, 4 of B, 4 in common; are images"},
		{"two ways", append(otherSettings, base...), "", "side B: not comparable: motion_deblur σ=0.05 128x128 center_crop is solved in two ways, ddiff (steps=7) in float16 and ddiff (steps=100)"},
		{"other problems", solvedBy(t, "ddiff", 0, func(r *item.Result) { r.Item.Sigma = 0.1 }), "",
			"no problem is common: A has motion_deblur σ=0.05 128x128 center_crop, B has motion_deblur σ=0.1 128x128 center_crop"},
		{"nothing", nil, "", "no problem is common: one side has no restored item"},
	} {
		if _, err := comparison.Compare(reporttest.Stream(base), reporttest.Stream(tt.b), nil, tt.rule, ""); !errors.Is(err, comparison.ErrNotComparable) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
	broken := errors.New("connection lost")
	var bad iter.Seq2[item.Result, error] = func(yield func(item.Result, error) bool) { yield(item.Result{}, broken) }
	if _, err := comparison.Compare(reporttest.Stream(base), bad, nil, "", ""); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the results", err)
	}
}

// TestCompareLeavesOutFailures: an item that failed on one side has no pair, and is counted.
func TestCompareLeavesOutFailures(t *testing.T) {
	t.Parallel()
	a, b := solvedBy(t, "diffpir", 1), solvedBy(t, "ddiff", 0)
	reporttest.Ended(item.OutcomeFailed, "x")(&b[0])
	v, err := comparison.Compare(reporttest.Stream(a), reporttest.Stream(b), nil, "", "")
	reporttest.Must(t, err)
	if r := v.Rows[0]; r.LeftOut != 1 || r.Difference.N != 4 || r.MeanA.N != 4 {
		t.Errorf("row %+v", r)
	}
}

// TestCompareNamesTheComparedRuns: the items beside two scores are those that have the scores.
func TestCompareNamesTheComparedRuns(t *testing.T) {
	t.Parallel()
	dead := reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Ended(item.OutcomeDead, "given up"))
	far := reporttest.Result(t, "hdr", "ddiff", "a", 1, reporttest.Scored(21, 15, 0.5, 0.02))
	near := reporttest.Result(t, "hdr", "ddiff", "a", 2, reporttest.Scored(23, 15, 0.5, 0.001))
	other := reporttest.Result(t, "hdr", "diffpir", "a", 0, reporttest.Scored(22, 15, 0.5, 0))
	for rule, want := range map[selection.Rule]item.Result{selection.First: far, selection.Mean: far, selection.ClosestToNoise: near} {
		v, err := comparison.Compare(reporttest.Stream([]item.Result{dead, far, near}), reporttest.Stream([]item.Result{other}), nil, rule, "")
		reporttest.Must(t, err)
		if d := v.Images[0]; d.ItemA != want.Item.ID || d.ItemB != other.Item.ID || rule != selection.Mean && d.ValueA != want.Metrics["psnr"] {
			t.Errorf("%s: %+v, want item %s", rule, d, want.Item.ID)
		}
	}
}

func TestCompareWritesPictures(t *testing.T) {
	t.Parallel()
	a, b := solvedBy(t, "diffpir", 1), solvedBy(t, "ddiff", 0)
	stores := [2]*reporttest.Memory{reporttest.NewMemory(), reporttest.NewMemory()}
	for i, results := range [][]item.Result{a, b} {
		for k := range results {
			reporttest.Illustrate(t, stores[i], &results[k], k)
		}
	}
	v, err := comparison.Compare(reporttest.Stream(a), reporttest.Stream(b), nil, "", "")
	reporttest.Must(t, err)
	to := reporttest.NewMemory()
	reporttest.Must(t, v.Write(t.Context(), to, stores[0], stores[1], nil, 3))
	img, err := png.Decode(bytes.NewReader(to.Files[comparison.KeyDifferences]))
	reporttest.Must(t, err)
	pictures := 0
	for _, store := range stores {
		for key, n := range store.Reads {
			if pictures += n; n != 1 || !strings.HasSuffix(key, ".png") {
				t.Errorf("%s was read %d times", key, n)
			}
		}
	}
	if pictures != 3*4 || img.Bounds().Dy() < 3*150 {
		t.Errorf("%d pictures were read, of four in each of three rows; the sheet is of %v", pictures, img.Bounds())
	}
	var stored comparison.Versus
	if err := json.Unmarshal(to.Files[comparison.KeyComparison], &stored); err != nil || len(stored.Images) != 10 {
		t.Errorf("comparison.json: %d images, error %v", len(stored.Images), err)
	}
	delete(stores[1].Files, item.Key(v.Images[0].ItemB, item.FileRestored))
	if err := v.Write(t.Context(), to, stores[0], stores[1], nil, 3); !errors.Is(err, result.ErrIncomplete) {
		t.Errorf("a picture is missing: error %v, want ErrIncomplete", err)
	}
}

// TestProblemsOfOneSide: a comparison names the problems that only one side has.
func TestProblemsOfOneSide(t *testing.T) {
	t.Parallel()
	a, b := solvedBy(t, "diffpir", 0.25), solvedBy(t, "ddiff", 0)
	extra := func(task, method string) item.Result {
		return reporttest.Result(t, task, method, "image0", 0, reporttest.Scored(20, 15, 0.5, 0))
	}
	v, err := comparison.Compare(reporttest.Stream(append(a, extra("inpaint", "diffpir"))), reporttest.Stream(append(b, extra("phase_retrieval", "ddiff"))), nil, "", "")
	reporttest.Must(t, err)
	var text bytes.Buffer
	reporttest.Must(t, v.WriteText(&text, 0))
	reporttest.Contains(t, text.String(), "inpaint σ=0.05 128x128 center_crop: only in A.", "phase_retrieval σ=0.05 128x128 center_crop: only in B.")
	if strings.Contains(text.String(), "largest differences") {
		t.Errorf("differences that nobody asked for:\n%s", text.String())
	}
}

// TestCompareNamesUnequalConditions: prior, precision, number of runs and tuning are named with the values of both sides, where they
// matter. Methods, settings and other tasks are not.
func TestCompareNamesUnequalConditions(t *testing.T) {
	t.Parallel()
	used := func(precision parameter.Precision) func(*item.Result) {
		return func(r *item.Result) { r.Runtime.Precision = precision }
	}
	prior := func(r *item.Result) { r.Item.Prior = strings.Repeat("cd", 32) }
	settings := func(r *item.Result) { r.Item.Solver = json.RawMessage(`{"steps":7}`) }
	again := func(r *item.Result) { r.Item.Run = 1 }
	base := solvedBy(t, "ddiff", 0, used("float32"))
	mixed := solvedBy(t, "ddiff", 0, used("float32"))
	mixed[0].Runtime.Precision = "bfloat16"
	twice := slices.Concat(base, solvedBy(t, "ddiff", 1, used("float32"), again))
	for _, tt := range []struct {
		name string
		b    []item.Result
		rule selection.Rule
		want []string
	}{
		{"methods and settings", solvedBy(t, "diffpir", 1, used("float32"), settings), "", nil},
		{"prior", solvedBy(t, "diffpir", 1, used("float32"), prior), "", []string{"note: unequal prior: abababab in A, cdcdcdcd in B (measurements: 10)"}},
		{"precision", solvedBy(t, "diffpir", 1, used("bfloat16")), "", []string{"note: unequal precision: float32 in A, bfloat16 in B (measurements: 10)"}},
		{"precision of one item", mixed, "", []string{"note: unequal precision: float32 in A, bfloat16 in B (measurements: 1)"}},
		{"unknown precision", solvedBy(t, "diffpir", 1), "", nil},
		{"runs, of which the first counts", twice, "", nil},
		{"runs", twice, selection.Mean, []string{"note: unequal runs: 1 in A, 2 in B (measurements: 10)"}},
		{"several", solvedBy(t, "diffpir", 1, used("bfloat16"), prior), "", []string{
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
	tuned := func(results ...item.Result) *aggregate.Tunings {
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

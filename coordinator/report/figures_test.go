package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ddiff/manifest"
)

// with changes the noise level and the settings of a result.
func with(sigma float64, settings string) func(*manifest.Result) {
	return func(r *manifest.Result) { r.Item.Sigma, r.Item.Solver = sigma, json.RawMessage(settings) }
}

// traced stores a trace with a curve of two norms for a result.
func traced(t *testing.T, store *memory, r *manifest.Result, data, primal []float64) {
	t.Helper()
	trace := manifest.Trace{Timestep: make([]int, len(data)), Curves: []manifest.Curve{{Name: "data_norm", Values: data}}}
	if primal != nil {
		trace.Curves = append(trace.Curves, manifest.Curve{Name: "primal_norm", Values: primal})
	}
	text, err := json.Marshal(trace)
	if err != nil {
		t.Fatal(err)
	}
	store.files[manifest.ItemKey(r.Item.ID, manifest.FileTrace)] = text
	r.Artifacts = map[string]string{manifest.FileTrace: ""}
}

// figuresOf writes the figures and returns the rows of each figure's CSV file, without the header, as lists by series. A
// point is "x y low high n", with 6 digits.
func figuresOf(t *testing.T, store *memory, results []manifest.Result, rule Rule) map[string]map[string][]string {
	t.Helper()
	if _, err := WriteFigures(t.Context(), store, Campaign{Select: rule}, stream(results)); err != nil {
		t.Fatal(err)
	}
	return readFigures(t, store)
}

func readFigures(t *testing.T, store *memory) map[string]map[string][]string {
	t.Helper()
	out := make(map[string]map[string][]string)
	for key, data := range store.files {
		name, ok := strings.CutSuffix(key, ".csv")
		if !ok {
			continue
		}
		rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
		if err != nil || strings.Join(rows[0], ",") != "panel,series,x_name,x,y_name,y,low,high,n,image,item" {
			t.Fatalf("%s: %v, header %q", key, err, rows)
		}
		out[name] = make(map[string][]string)
		for _, row := range rows[1:] {
			series := strings.TrimSpace(row[0] + " " + row[1])
			if row[2] != "step" {
				series = strings.TrimSpace(series + " " + row[4])
			} else {
				series += " " + row[4]
			}
			point := row[9]
			for _, column := range []int{3, 5, 6, 7} {
				text := "-"
				if v, err := strconv.ParseFloat(row[column], 64); err == nil {
					text = strconv.FormatFloat(v, 'g', 6, 64)
				}
				point += " " + text
			}
			out[name][series] = append(out[name][series], strings.TrimSpace(point+" "+row[8]))
		}
	}
	return out
}

func expect(t *testing.T, figures map[string]map[string][]string, name, series string, want ...string) {
	t.Helper()
	if got := figures[name][series]; !slices.Equal(got, want) {
		t.Errorf("%s, %s:\ngot  %q\nwant %q\nof %q", name, series, got, want, slices.Sorted(maps.Keys(figures[name])))
	}
}

// The interval of 20, 22 and 24 is 22 ± t(2)·2/√3 = 22 ± 4.96828; two results of one image are one cluster.
func TestSweepFigure(t *testing.T) {
	t.Parallel()
	var results []manifest.Result
	add := func(method, image string, sigma float64, settings string, psnr float64, more ...func(*manifest.Result)) {
		r := result(t, "hdr", method, image, 0, append([]func(*manifest.Result){
			scored(psnr, 10, 0.5, 0), with(sigma, settings),
		}, more...)...)
		results = append(results, r)
	}
	for i, image := range []string{"a", "b", "c"} {
		v := 2 * float64(i)
		add("ddiff", image, 0.02, `{"steps":10,"gamma0":8}`, 20+v)
		add("ddiff", image, 0.1, `{"steps":10,"gamma0":8}`, 10+v)
		add("ddiff", image, 0.02, `{"steps":40,"gamma0":8}`, 30+v, func(r *manifest.Result) { r.Cost.Network, r.Seconds = 80, 5 })
		add("other", image, 0.02, `{"steps":20}`, 15)
		add("other", image, 0.1, `{"steps":20}`, 14)
	}
	results = append(results, result(t, "hdr", "other", "d", 0, ended(manifest.OutcomeFailed, "x"), with(0.1, `{"steps":20}`)))
	store := newMemory()
	figures := figuresOf(t, store, results, RuleFirst)
	expect(t, figures, "psnr_vs_sigma_hdr", "ddiff psnr", "0.02 22 17.0317 26.9683 3", "0.1 12 7.03172 16.9683 3")
	expect(t, figures, "psnr_vs_sigma_hdr", "other psnr", "0.02 15 15 15 3", "0.1 14 14 14 3")
	expect(t, figures, "psnr_vs_steps_hdr", "ddiff psnr", "10 22 17.0317 26.9683 3", "40 32 27.0317 36.9683 3")
	expect(t, figures, "psnr_vs_evaluations_hdr", "σ=0.02 ddiff psnr", "80 32 27.0317 36.9683 3", "100 22 17.0317 26.9683 3")
	expect(t, figures, "psnr_vs_seconds_hdr", "σ=0.02 ddiff psnr", "2 22 17.0317 26.9683 3", "5 32 27.0317 36.9683 3")
	if len(figures["psnr_vs_gamma0_hdr"]) != 0 {
		t.Error("a figure of a setting that does not vary")
	}
	captions := string(store.files[KeyCaptions])
	for _, want := range []string{
		": PSNR against noise level σ", "95 % confidence intervals", "n = 3 images per point", "the first run of each measurement (first)",
		"1 item failed", "Not drawn: 1 line with one value of sigma",
	} {
		if !strings.Contains(strings.ReplaceAll(captions, "\\", ""), want) {
			t.Errorf("captions lack %q:\n%s", want, captions)
		}
	}
}

// The kernel's parameter size varies, and not the size of the images.
func TestSweepOverAParameter(t *testing.T) {
	t.Parallel()
	var results []manifest.Result
	for _, size := range []float64{21, 61} {
		for _, width := range []int{64, 128} {
			results = append(results, result(t, "gaussian_deblur", "ddiff", "a", 0, scored(size, 10, 0.5, 0), func(r *manifest.Result) {
				r.Item.Params = map[string]float64{"size": size, "std": 3}
				r.Item.Width, r.Item.Height = width, width
			}))
		}
	}
	figures := figuresOf(t, newMemory(), results, RuleFirst)
	for _, panel := range []string{"image_size=64x64 center_crop", "image_size=128x128 center_crop"} {
		expect(t, figures, "psnr_vs_size_gaussian_deblur", panel+" ddiff psnr", "21 21 - - 1", "61 61 - - 1")
	}
}

// Two rows of one image are one cluster: without a second image there is no interval.
func TestFiguresClusterByImage(t *testing.T) {
	t.Parallel()
	store := newMemory()
	var results []manifest.Result
	for _, sigma := range []float64{0.02, 0.1} {
		for seed := range 2 {
			r := result(t, "hdr", "ddiff", "a", 0, scored(20+float64(seed), 10, 0.5, 0), with(sigma, `{"steps":2}`),
				func(r *manifest.Result) { r.Item.Seed = uint64(seed) })
			traced(t, store, &r, []float64{float64(seed), 1}, nil)
			results = append(results, r)
		}
	}
	figures := figuresOf(t, store, results, RuleFirst)
	expect(t, figures, "psnr_vs_sigma_hdr", "ddiff psnr", "0.02 20.5 - - 1", "0.1 20.5 - - 1")
	expect(t, figures, "convergence_hdr_sigma0.02", "ddiff data_norm", "1 0.5 - - 1", "2 1 - - 1")
}

// The interval of 1 and 3 is 2 ± t(1)·√2/√2 = 2 ± 12.7062.
func TestConvergenceFigure(t *testing.T) {
	t.Parallel()
	store := newMemory()
	a := result(t, "hdr", "ddiff", "a", 0, scored(20, 10, 0.5, 0))
	b := result(t, "hdr", "ddiff", "b", 0, scored(20, 10, 0.5, 0))
	c := result(t, "hdr", "other", "a", 0, scored(20, 10, 0.5, 0))
	d := result(t, "hdr", "other", "b", 0, scored(20, 10, 0.5, 0)) // has no trace
	traced(t, store, &a, []float64{1, 4, 7}, []float64{1, 1, 1})
	traced(t, store, &b, []float64{3, 4, 9}, []float64{1, 1, 3})
	traced(t, store, &c, []float64{5, 6}, nil)
	figures := figuresOf(t, store, []manifest.Result{a, b, c, d}, RuleFirst)
	expect(t, figures, "convergence_hdr", "ddiff data_norm", "1 2 -10.7062 14.7062 2", "2 4 4 4 2", "3 8 -4.7062 20.7062 2")
	expect(t, figures, "convergence_hdr", "ddiff primal_norm", "1 1 1 1 2", "2 1 1 1 2", "3 2 -10.7062 14.7062 2")
	expect(t, figures, "convergence_hdr", "other data_norm", "1 5 - - 1", "2 6 - - 1")
	captions := string(store.files[KeyCaptions])
	for _, want := range []string{"n = 1 to 2 images", "1 measurement without a readable trace", "each image one cluster", "first finished run"} {
		if !strings.Contains(captions, want) {
			t.Errorf("captions lack %q:\n%s", want, captions)
		}
	}
}

func TestUnreadableTraceIsStated(t *testing.T) {
	t.Parallel()
	for name, trace := range map[string]string{
		"damaged": "{", "uneven": `{"timestep":[1,2],"data_norm":[1]}`, "missing": "",
	} {
		store := newMemory()
		a := result(t, "hdr", "ddiff", "a", 0, scored(20, 10, 0.5, 0))
		b := result(t, "hdr", "ddiff", "b", 0, scored(20, 10, 0.5, 0))
		traced(t, store, &a, []float64{1, 4, 7}, nil)
		traced(t, store, &b, []float64{1, 4, 7}, nil)
		key := manifest.ItemKey(b.Item.ID, manifest.FileTrace)
		if store.files[key] = []byte(trace); trace == "" {
			delete(store.files, key)
		}
		n, err := WriteFigures(t.Context(), store, Campaign{}, stream([]manifest.Result{a, b}))
		if !errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), key) || n != 4 {
			t.Errorf("%s: %d figures, error %v", name, n, err)
		}
		expect(t, readFigures(t, store), "convergence_hdr", "ddiff data_norm", "1 1 - - 1", "2 4 - - 1", "3 7 - - 1")
		if !strings.Contains(string(store.files[KeyCaptions]), "1 measurement without a readable trace") {
			t.Errorf("%s: the caption does not state it", name)
		}
	}
}

// The approaches to one problem show the same measurements, and no more traces are read than the limit.
func TestConvergenceSample(t *testing.T) {
	t.Parallel()
	store := newMemory()
	var results []manifest.Result
	const items, limit = 40, 8
	for _, method := range []string{"ddiff", "other"} {
		for i := range items {
			r := result(t, "hdr", method, fmt.Sprint(i), 0, scored(20, 10, 0.5, 0))
			traced(t, store, &r, []float64{float64(i)}, nil)
			results = append(results, r)
		}
	}
	s, err := collect(stream(results), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	summary, err := summarize(s, nil, RuleFirst, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &figureWriter{store: store, summary: summary, limits: traceLimits{total: 2 * limit, line: 100}}
	if err := w.writeAll(t.Context(), s.all()); err != nil {
		t.Fatal(err)
	}
	if len(store.reads) != 2*limit {
		t.Errorf("%d traces read, want %d", len(store.reads), 2*limit)
	}
	figures := readFigures(t, store)
	if a, b := figures["convergence_hdr"]["ddiff data_norm"], figures["convergence_hdr"]["other data_norm"]; len(a) != 1 || !slices.Equal(a, b) {
		t.Errorf("%q and %q are means over different measurements", a, b)
	}
	if !strings.Contains(string(store.files[KeyCaptions]), "random sample of 8 measurements") {
		t.Errorf("the caption does not state the sample:\n%s", store.files[KeyCaptions])
	}
}

func TestTraceLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ problems, approaches, want int }{{1, 1, 128}, {1, 2, 128}, {8, 2, 64}, {40, 30, 6}} {
		var s Summary
		for p := range tt.problems {
			for a := range tt.approaches {
				s.Rows = append(s.Rows, Row{Images: 1, Problem: Problem{Sigma: manifest.Sigma(p), Size: "x"}, Approach: Approach{Method: fmt.Sprint(a)}})
			}
		}
		got := reportTraces().divide(s).line
		if lines := min(tt.problems, maxProblems) * min(tt.approaches, maxLines); got != tt.want || got*lines > 1024 {
			t.Errorf("%v: %d traces for each of %d lines", tt, got, lines)
		}
	}
}

func TestLongTraceIsThinned(t *testing.T) {
	t.Parallel()
	at := curveSteps(1000)
	if len(at) != maxCurveSteps || at[0] != 0 || at[len(at)-1] != 999 || at[1] != 10 {
		t.Errorf("steps %v", at)
	}
	if got := curveSteps(3); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("steps %v", got)
	}
}

func TestScatterFigures(t *testing.T) {
	t.Parallel()
	store := newMemory()
	results := []manifest.Result{
		result(t, "hdr", "ddiff", "a", 0, scored(20, 10, 0.5, 0.0025)),
		result(t, "hdr", "other", "a", 0, scored(19, 10, 0.5, 0)),
		result(t, "hdr", "ddiff", "b", 0, scored(22, 10, 0.5, 0)),
		result(t, "hdr", "other", "b", 0, scored(23, 10, 0.5, 0), func(r *manifest.Result) { r.Item.Seed = 8 }), // another measurement
	}
	figures := figuresOf(t, store, results, RuleFirst)
	expect(t, figures, "pairs_hdr", "psnr other", "a 20 19 - -")
	residual := figures["residual_vs_psnr_hdr"]["ddiff residual_ratio"]
	slices.Sort(residual)
	if want := []string{"a 20 2 - -", "b 22 1 - -"}; !slices.Equal(residual, want) {
		t.Errorf("residuals %q, want %q", residual, want)
	}
}

// The rule combines the runs of a point.
func TestFiguresFollowTheRule(t *testing.T) {
	t.Parallel()
	results := []manifest.Result{
		result(t, "hdr", "ddiff", "a", 0, scored(20, 10, 0.5, 0.01)),
		result(t, "hdr", "ddiff", "a", 1, scored(25, 10, 0.5, 0.005)),
	}
	for rule, want := range map[Rule]string{RuleFirst: "a 20 5 - -", RuleMean: "a 22.5 4 - -", RuleBestPSNR: "a 25 3 - -"} {
		store := newMemory()
		figures := figuresOf(t, store, results, rule)
		expect(t, figures, "residual_vs_psnr_hdr", "ddiff residual_ratio", want)
		captions := strings.ReplaceAll(string(store.files[KeyCaptions]), "\\", "")
		if !strings.Contains(captions, "("+string(rule)+")") || strings.Contains(captions, oracleNote) != rule.Oracle() {
			t.Errorf("%s: captions\n%s", rule, captions)
		}
	}
}

func TestHistogram(t *testing.T) {
	t.Parallel()
	var h histogram
	for _, v := range []float64{20, 20.1, 20.9, 21, 23.99, math.NaN()} {
		h.add(v)
	}
	var got []string
	for _, p := range h.steps(4) {
		got = append(got, fmt.Sprintf("%g:%g", p.X, p.Y))
	}
	if want := "20:3 21:1 22:0 23:1 24:0"; h.n != 5 || strings.Join(got, " ") != want {
		t.Errorf("%d values in %v, want %s", h.n, got, want)
	}
	if w := binWidth([]*histogram{&h}); w != 2 { // 0.5 dB: eight bins
		t.Errorf("bins of %g dB", float64(w)*fineBin)
	}
	var negative histogram
	negative.add(-0.1)
	negative.add(-1e300)
	if s := negative.steps(8000); len(s) != 2 || s[0].X != -2000 || s[0].Y != 2 {
		t.Errorf("negative values in %v", s)
	}
	if w := binWidth([]*histogram{&negative}); w < 400 {
		t.Errorf("bins of %g dB", float64(w)*fineBin)
	}
}

// Results that no figure can show leave a list of captions and nothing else.
func TestFiguresOfUnusableResults(t *testing.T) {
	t.Parallel()
	nothing := func(r *manifest.Result) { r.Metrics = manifest.Metrics{} }
	wrong := func(r *manifest.Result) {
		r.Metrics = manifest.Metrics{PSNR: new(math.NaN()), Residual: new(math.Inf(1)), BaselinePSNR: new(math.Inf(-1))}
		r.Seconds = math.NaN()
	}
	for name, results := range map[string][]manifest.Result{
		"none":       nil,
		"all failed": {result(t, "hdr", "ddiff", "a", 0, ended(manifest.OutcomeFailed, "x"))},
		"no scores":  {result(t, "hdr", "ddiff", "a", 0, nothing), result(t, "hdr", "other", "a", 0, nothing)},
		"undefined":  {result(t, "hdr", "ddiff", "a", 0, wrong), result(t, "hdr", "ddiff", "a", 0, wrong, with(0.1, `{"steps":100}`))},
	} {
		store := newMemory()
		n, err := WriteFigures(t.Context(), store, Campaign{}, stream(results))
		if n != 0 || err != nil || len(store.files) != 1 || !strings.Contains(string(store.files[KeyCaptions]), "No figures") {
			t.Errorf("%s: %d figures, %d files, error %v", name, n, len(store.files), err)
		}
	}
	store := newMemory()
	if figures := figuresOf(t, store, []manifest.Result{result(t, "hdr", "ddiff", "a", 0, scored(20, 10, 0.5, 0))}, RuleFirst); len(figures) != 3 {
		t.Errorf("one item has %d figures, want two histograms and the residual", len(figures))
	}
}

// A trace may hold null, and curves may be infinite after an overflow.
func TestConvergenceOfUndefinedValues(t *testing.T) {
	t.Parallel()
	got := meanCurve([]*traceValues{
		{image: 1, steps: 2, curves: [][]float64{{math.Inf(1), 2}}},
		{image: 2, steps: 2, curves: [][]float64{{math.NaN(), 4}}},
		{image: 3, steps: 1, curves: [][]float64{{7}}},
	}, 0)
	if len(got) != 2 || defined(got[0].Y) || got[0].n != 0 || got[1].Y != 3 || got[1].n != 2 {
		t.Errorf("%+v", got)
	}
}

func TestFiguresDependOnResultsOnly(t *testing.T) {
	t.Parallel()
	store := newMemory()
	var results []manifest.Result
	for i := range 30 {
		for _, sigma := range []float64{0.05, 0.1} {
			r := result(t, "hdr", "ddiff", fmt.Sprint(i), 0, scored(20+math.Sin(float64(i)), 10, 0.5, 0.001*float64(i)), with(sigma, `{"steps":2}`))
			traced(t, store, &r, []float64{math.Sqrt(float64(i)), 1 / (float64(i) + 1)}, nil)
			results = append(results, r)
		}
	}
	figuresOf(t, store, results, RuleFirst)
	first := maps.Clone(store.files)
	slices.Reverse(results)
	slices.SortStableFunc(results, func(a, b manifest.Result) int { return strings.Compare(a.Item.ID[:1], b.Item.ID[:1]) })
	figuresOf(t, store, results, RuleFirst)
	for key, data := range store.files {
		if !bytes.Equal(data, first[key]) {
			t.Errorf("%s depends on the order of the results", key)
		}
	}
}

func TestStaleFilesAreRemoved(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(*memory) files{
		"store":  func(m *memory) files { return m },
		"folder": func(m *memory) files { return Folder{To: m} },
	} {
		store := newMemory()
		kept := []string{
			"figures/mine.svg", "figures/convergence_notes.txt", "figures/convergence_x/y.svg", "convergence_x.svg", "figures/pairs_lena.png",
			"figures/psnr_vs_paper.csv", "figures/psnr_vs_paper.svg", "sheets/mine.png", "sheets/hdr.txt", "sheets/runs/mine/mean.png", "mosaic.png.bak",
		}
		stale := []string{
			"figures/convergence_old.svg", "figures/convergence_old.csv", "figures/psnr_vs_sigma_hdr.png", "figures/psnr_vs_sigma_hdr.csv",
			"sheets/motion_deblur.png", "sheets/runs/" + strings.Repeat("0", 64) + "/mean.png",
		}
		for _, key := range append(slices.Clone(stale), kept...) {
			store.files[key] = []byte("x")
		}
		for _, key := range []string{"figures/convergence_old.csv", "figures/psnr_vs_sigma_hdr.csv"} {
			store.files[key] = []byte("panel,series,x_name,x,y_name,y,low,high,n,image,item\n")
		}
		results := []manifest.Result{result(t, "hdr", "ddiff", "a", 0, scored(20, 10, 0.5, 0))}
		if _, err := Write(t.Context(), wrap(store), testCampaign(), stream(results)); err != nil {
			t.Fatal(err)
		}
		for _, key := range kept {
			if store.files[key] == nil {
				t.Errorf("%s: %s, which is of no report, was removed", name, key)
			}
		}
		for _, key := range stale {
			if store.files[key] != nil {
				t.Errorf("%s: %s remains", name, key)
			}
		}
		if store.files["figures/histogram_psnr_hdr.svg"] == nil {
			t.Errorf("%s: no figure was written", name)
		}
	}
}

func TestFigureNamesAreSafeAndDistinct(t *testing.T) {
	t.Parallel()
	w := &figureWriter{used: make(map[string]bool)}
	for _, task := range []string{"hdr", "../../etc", "a b", "a_b", "a/b", "\x00", strings.Repeat("x", 300), strings.Repeat("x", 301)} {
		before := len(w.used)
		name := w.uniqueName(figureSweep + task)
		if len(w.used) != before+1 {
			t.Errorf("%q is given twice", name)
		}
		if !strings.HasPrefix(name, figureSweep) || strings.ContainsAny(name, "/\\ \x00") || len(name) > maxNameLength+4 {
			t.Errorf("name %q", name)
		}
	}
}

// hostileFigures are results with a script in every name.
func hostileFigures(t *testing.T, store *memory) []manifest.Result {
	t.Helper()
	var results []manifest.Result
	for _, sigma := range []float64{0.05, 0.1} {
		for _, name := range []string{hostile, "=cmd()"} {
			for _, method := range []string{hostile, hostile + "2"} {
				r := result(t, hostile, method, name, 0, scored(25+sigma, 20, 0.7, 0.001), with(sigma, `{"</text><script>":"\u0000<script>"}`))
				traced(t, store, &r, []float64{1, 2}, []float64{3, 4})
				results = append(results, r)
			}
		}
	}
	return results
}

func TestHostileNamesInFigures(t *testing.T) {
	t.Parallel()
	store := newMemory()
	figures := figuresOf(t, store, hostileFigures(t, store), RuleFirst)
	if len(figures) < 5 {
		t.Fatalf("%d figures", len(figures))
	}
	for key, data := range store.files {
		switch filepath.Ext(key) {
		case ".svg":
			for d := xml.NewDecoder(bytes.NewReader(data)); ; {
				token, err := d.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatalf("%s: %v", key, err)
				}
				if e, ok := token.(xml.StartElement); ok && !slices.Contains([]string{"svg", "title", "desc", "g", "path", "text"}, e.Name.Local) {
					t.Errorf("%s has an element %s", key, e.Name.Local)
				}
			}
		case ".csv":
			if bytes.Contains(data, []byte(",=")) {
				t.Errorf("%s has a formula", key)
			}
		case ".md":
			if strings.Contains(strings.ReplaceAll(string(data), "\\<", ""), "<") {
				t.Errorf("%s has a tag:\n%s", key, data)
			}
		}
	}
}

func TestFiguresInBrowser(t *testing.T) {
	t.Parallel()
	store := newMemory()
	results := append(hostileFigures(t, store), campaign(t, store)...)
	figuresOf(t, store, results, RuleFirst)
	dir := t.TempDir()
	store.export(t, dir)
	var page strings.Builder
	page.WriteString("<!DOCTYPE html><html><body>")
	count := 0
	for _, key := range slices.Sorted(maps.Keys(store.files)) {
		if filepath.Ext(key) == ".svg" {
			fmt.Fprintf(&page, "<img src=%q>", key)
			count++
		}
	}
	page.WriteString(`<script>addEventListener("load", () => {
  const images = [...document.images];
  document.documentElement.dataset.wide = images.filter((i) => i.naturalWidth > 300 && i.naturalHeight > 100).length;
});</script></body></html>`)
	path := filepath.Join(dir, "figures.html")
	if err := os.WriteFile(path, []byte(page.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := state(t, browse(t, path, ""), "wide"); got != fmt.Sprint(count) || count < 40 {
		t.Errorf("the browser shows %s of %d figures", got, count)
	}
	// The document itself: the browser replaces what is not well-formed by an error message, and would run a script.
	var svg string
	for key := range store.files {
		if filepath.Ext(key) == ".svg" && strings.HasPrefix(key, "psnr_vs_sigma_") {
			svg = filepath.Join(dir, key)
		}
	}
	document := browse(t, svg, "")
	if !strings.Contains(document, "<title>") || strings.Contains(document, "parsererror") || strings.Contains(document, "<script>") {
		t.Errorf("the browser shows %.400q", document)
	}
}

func TestManyProblemsAreBounded(t *testing.T) {
	t.Parallel()
	store := newMemory()
	var results []manifest.Result
	for i := range 16 + 3 {
		results = append(results, result(t, "hdr", "ddiff", "a", 0, scored(20, 10, 0.5, 0), with(float64(i+1)/100, `{"steps":2}`)))
	}
	figures := figuresOf(t, store, results, RuleFirst)
	if len(figures) != 1+3*16 {
		t.Errorf("%d figures", len(figures))
	}
	if got := strings.Count(string(store.files[KeyCaptions]), "The first 16 of 19 problems have such figures."); got != 3*16 {
		t.Errorf("%d captions state the bound", got)
	}
	if got := len(figures["psnr_vs_sigma_hdr"]["ddiff psnr"]); got != 16+3 {
		t.Errorf("%d points of all problems", got)
	}
}

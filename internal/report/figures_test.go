package report

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ddiff/internal/report/chart"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/result"
	"ddiff/internal/report/selection"
	"ddiff/internal/restore/metric"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// figuresOf writes the figures and returns the rows of each figure's CSV file, without the header, as lists by series. A
// point is "x y low high n", with 6 digits.
func figuresOf(t *testing.T, store *reporttest.Memory, results []item.Result, rule selection.Rule) map[string]map[string][]string {
	t.Helper()
	if _, err := WriteFigures(t.Context(), store, Campaign{Select: rule}, reporttest.Stream(results)); err != nil {
		t.Fatal(err)
	}
	return reporttest.ReadFigures(t, store)
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
	var results []item.Result
	add := func(method, image string, sigma float64, settings string, psnr float64, more ...func(*item.Result)) {
		r := reporttest.Result(t, "hdr", method, image, 0, append([]func(*item.Result){
			reporttest.Scored(psnr, 10, 0.5, 0), reporttest.With(sigma, settings),
		}, more...)...)
		results = append(results, r)
	}
	for i, image := range []string{"a", "b", "c"} {
		v := 2 * float64(i)
		add("ddiff", image, 0.02, `{"steps":10,"gamma0":8}`, 20+v)
		add("ddiff", image, 0.1, `{"steps":10,"gamma0":8}`, 10+v)
		add("ddiff", image, 0.02, `{"steps":40,"gamma0":8}`, 30+v, func(r *item.Result) { r.Cost.Network, r.Seconds = 80, 5 })
		add("other", image, 0.02, `{"steps":20}`, 15)
		add("other", image, 0.1, `{"steps":20}`, 14)
	}
	results = append(results, reporttest.Result(t, "hdr", "other", "d", 0, reporttest.Ended(item.OutcomeFailed, "x"), reporttest.With(0.1, `{"steps":20}`)))
	store := reporttest.NewMemory()
	figures := figuresOf(t, store, results, selection.First)
	expect(t, figures, "psnr_vs_sigma_hdr", "ddiff psnr", "0.02 22 17.0317 26.9683 3", "0.1 12 7.03172 16.9683 3")
	expect(t, figures, "psnr_vs_sigma_hdr", "other psnr", "0.02 15 15 15 3", "0.1 14 14 14 3")
	expect(t, figures, "psnr_vs_steps_hdr", "ddiff psnr", "10 22 17.0317 26.9683 3", "40 32 27.0317 36.9683 3")
	expect(t, figures, "psnr_vs_evaluations_hdr", "σ=0.02 ddiff psnr", "80 32 27.0317 36.9683 3", "100 22 17.0317 26.9683 3")
	expect(t, figures, "psnr_vs_seconds_hdr", "σ=0.02 ddiff psnr", "2 22 17.0317 26.9683 3", "5 32 27.0317 36.9683 3")
	expect(t, figures, "psnr_vs_seconds_hdr", "σ=0.02 Pareto front psnr", "2 22 - -", "5 32 - -")
	if len(figures["psnr_vs_gamma0_hdr"]) != 0 {
		t.Error("a figure of a setting that does not vary")
	}
	captions := string(store.Files[KeyCaptions])
	reporttest.Contains(t, strings.ReplaceAll(captions, "\\", ""),
		": PSNR against noise level σ", "95 % confidence intervals", "n = 3 images per point", "the first run of each measurement (first)",
		"1 item failed", "Not drawn: 1 line with one value of sigma",
	)
}

// The kernel's parameter size varies, and not the size of the images.
func TestSweepOverAParameter(t *testing.T) {
	t.Parallel()
	var results []item.Result
	for _, size := range []float64{21, 61} {
		for _, width := range []int{64, 128} {
			results = append(results, reporttest.Result(t, "gaussian_deblur", "ddiff", "a", 0, reporttest.Scored(size, 10, 0.5, 0), func(r *item.Result) {
				r.Item.Params = map[string]float64{"size": size, "std": 3}
				r.Item.Width, r.Item.Height = width, width
			}))
		}
	}
	figures := figuresOf(t, reporttest.NewMemory(), results, selection.First)
	for _, panel := range []string{"image_size=64x64 center_crop", "image_size=128x128 center_crop"} {
		expect(t, figures, "psnr_vs_size_gaussian_deblur", panel+" ddiff psnr", "21 21 - - 1", "61 61 - - 1")
	}
}

// The setting noise_std follows the noise level along a line, as it does by default. Several values at each level are lines of their own.
func TestSweepOfNoiseLevels(t *testing.T) {
	t.Parallel()
	var results []item.Result
	add := func(task, method string, sigma, photons, noise, psnr float64) {
		results = append(results, reporttest.Result(t, task, method, "a", 0, reporttest.Scored(psnr, 10, 0.5, 0),
			reporttest.With(sigma, fmt.Sprintf(`{"steps":10,"noise_std":%g}`, noise)), func(r *item.Result) { r.Item.Photons = photons }))
	}
	for k, sigma := range []float64{0.02, 0.05} {
		add("hdr", "ddiff", sigma, 0, sigma, 20+float64(k))
		add("denoise", "ddiff", 0, 100*float64(k+1), sigma, 20+float64(k))
		results = append(results, reporttest.Result(t, "jpeg", "ddiff", "a", 0, reporttest.Scored(20, 10, 0.5, 0), reporttest.With(0, fmt.Sprintf(`{"steps":%d,"noise_std":%g}`, 10*(k+1), sigma))))
		for i, noise := range []float64{0.02, 0.05} {
			add("hdr", "dpir", sigma, 0, noise, 10*float64(i+1)+float64(k))
		}
	}
	figures := figuresOf(t, reporttest.NewMemory(), results, selection.First)
	expect(t, figures, "psnr_vs_sigma_hdr", "ddiff psnr", "0.02 20 - - 1", "0.05 21 - - 1")
	expect(t, figures, "psnr_vs_sigma_hdr", "dpir noise_std=0.02 psnr", "0.02 10 - - 1", "0.05 11 - - 1")
	expect(t, figures, "psnr_vs_sigma_hdr", "dpir noise_std=0.05 psnr", "0.02 20 - - 1", "0.05 21 - - 1")
	expect(t, figures, "psnr_vs_photons_denoise", "ddiff psnr", "100 20 - - 1", "200 21 - - 1")
	if lines := figures["psnr_vs_steps_jpeg"]; lines != nil { // steps and noise_std differ
		t.Errorf("a line over steps: %v", lines)
	}
}

// A fixed precision has a line of its own.
func TestPrecisionsHaveLines(t *testing.T) {
	t.Parallel()
	var results []item.Result
	for _, steps := range []float64{10, 20} {
		for k, fixed := range []manifest.Precision{"", "bfloat16"} {
			results = append(results, reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(steps+float64(k), 10, 0.5, 0),
				reporttest.With(0.05, fmt.Sprintf(`{"steps":%g}`, steps)), in(fixed, fixed)))
		}
	}
	figures := figuresOf(t, reporttest.NewMemory(), results, selection.First)
	for _, name := range []string{"psnr_vs_steps_hdr", "psnr_vs_evaluations_hdr"} {
		if lines := slices.Sorted(maps.Keys(figures[name])); len(lines) != 2 || len(figures[name]["ddiff precision=bfloat16 psnr"]) != 2 {
			t.Errorf("%s has the lines %q", name, lines)
		}
	}
}

// Settings of sharpen make one line of PSNR against sharpness, another method a line of its own.
func TestSharpnessFigure(t *testing.T) {
	t.Parallel()
	var results []item.Result
	for settings, scores := range map[string][2]float64{`{"sharpen":0}`: {24, -7}, `{"sharpen":3}`: {23, -3}} {
		for method, psnr := range map[string]float64{"ddiff": scores[0], "other": 20} {
			r := reporttest.Result(t, "hdr", method, "a", 0, reporttest.Scored(psnr, 10, 0.5, 0), reporttest.With(0.05, settings))
			r.Metrics[metric.NameSharpness] = scores[1]
			results = append(results, r)
		}
	}
	figures := figuresOf(t, reporttest.NewMemory(), results, selection.First)
	expect(t, figures, "psnr_vs_sharpness_hdr", "ddiff psnr", "-7 24 - - 1", "-3 23 - - 1")
	expect(t, figures, "psnr_vs_sharpness_hdr", "other psnr", "-7 20 - - 1", "-3 20 - - 1")
}

// Sharpness is in decibels, of which the axis shows the zero, also where noise makes all values positive.
func TestSharpnessKeepsItsZero(t *testing.T) {
	t.Parallel()
	var results []item.Result
	for settings, sharpness := range map[string]float64{`{"sharpen":0}`: 0.25, `{"sharpen":3}`: 4} {
		r := reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(20, 10, 0.5, 0), reporttest.With(0.05, settings))
		r.Metrics[metric.NameSharpness] = sharpness
		results = append(results, r)
	}
	store := reporttest.NewMemory()
	figuresOf(t, store, results, selection.First)
	if drawn := string(store.Files["psnr_vs_sharpness_hdr.svg"]); !strings.Contains(drawn, ">0</text>") {
		t.Errorf("no tick at 0:\n%s", drawn)
	}
}

// Two rows of one image are one cluster: without a second image there is no interval.
func TestFiguresClusterByImage(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	var results []item.Result
	for _, sigma := range []float64{0.02, 0.1} {
		for seed := range 2 {
			r := reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(20+float64(seed), 10, 0.5, 0), reporttest.With(sigma, `{"steps":2}`),
				func(r *item.Result) { r.Item.Seed = uint64(seed) })
			reporttest.Traced(t, store, &r, []float64{float64(seed), 1}, nil)
			results = append(results, r)
		}
	}
	figures := figuresOf(t, store, results, selection.First)
	expect(t, figures, "psnr_vs_sigma_hdr", "ddiff psnr", "0.02 20.5 - - 1", "0.1 20.5 - - 1")
	expect(t, figures, "convergence_hdr_sigma0.02", "ddiff data_norm", "1 0.5 - - 1", "2 1 - - 1")
}

// The interval of 1 and 3 is 2 ± t(1)·√2/√2 = 2 ± 12.7062.
func TestConvergenceFigure(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	a := reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(20, 10, 0.5, 0))
	b := reporttest.Result(t, "hdr", "ddiff", "b", 0, reporttest.Scored(20, 10, 0.5, 0))
	c := reporttest.Result(t, "hdr", "other", "a", 0, reporttest.Scored(20, 10, 0.5, 0))
	d := reporttest.Result(t, "hdr", "other", "b", 0, reporttest.Scored(20, 10, 0.5, 0)) // has no trace
	reporttest.Traced(t, store, &a, []float64{1, 4, 7}, []float64{1, 1, 1})
	reporttest.Traced(t, store, &b, []float64{3, 4, 9}, []float64{1, 1, 3})
	reporttest.Traced(t, store, &c, []float64{5, 6}, nil)
	figures := figuresOf(t, store, []item.Result{a, b, c, d}, selection.First)
	expect(t, figures, "convergence_hdr", "ddiff data_norm", "1 2 -10.7062 14.7062 2", "2 4 4 4 2", "3 8 -4.7062 20.7062 2")
	expect(t, figures, "convergence_hdr", "ddiff primal_norm", "1 1 1 1 2", "2 1 1 1 2", "3 2 -10.7062 14.7062 2")
	expect(t, figures, "convergence_hdr", "other data_norm", "1 5 - - 1", "2 6 - - 1")
	captions := string(store.Files[KeyCaptions])
	reporttest.Contains(t, captions, "n = 1 to 2 images", "1 measurement without a readable trace", "each image one cluster", "first finished run")
}

func TestUnreadableTraceIsStated(t *testing.T) {
	t.Parallel()
	for name, trace := range map[string]string{
		"damaged": "{", "uneven": `{"timestep":[1,2],"data_norm":[1]}`, "missing": "",
	} {
		store := reporttest.NewMemory()
		a := reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(20, 10, 0.5, 0))
		b := reporttest.Result(t, "hdr", "ddiff", "b", 0, reporttest.Scored(20, 10, 0.5, 0))
		reporttest.Traced(t, store, &a, []float64{1, 4, 7}, nil)
		reporttest.Traced(t, store, &b, []float64{1, 4, 7}, nil)
		key := item.Key(b.Item.ID, item.FileTrace)
		if store.Files[key] = []byte(trace); trace == "" {
			delete(store.Files, key)
		}
		n, err := WriteFigures(t.Context(), store, Campaign{}, reporttest.Stream([]item.Result{a, b}))
		if !errors.Is(err, result.ErrIncomplete) || !strings.Contains(err.Error(), key) || n != 2 {
			t.Errorf("%s: %d figures, error %v", name, n, err)
		}
		expect(t, reporttest.ReadFigures(t, store), "convergence_hdr", "ddiff data_norm", "1 1 - - 1", "2 4 - - 1", "3 7 - - 1")
		if !strings.Contains(string(store.Files[KeyCaptions]), "1 measurement without a readable trace") {
			t.Errorf("%s: the caption does not state it", name)
		}
	}
}

func TestScatterFigures(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	results := []item.Result{
		reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(20, 10, 0.5, 0.0025)),
		reporttest.Result(t, "hdr", "other", "a", 0, reporttest.Scored(19, 10, 0.5, 0)),
		reporttest.Result(t, "hdr", "ddiff", "b", 0, reporttest.Scored(22, 10, 0.5, 0)),
		reporttest.Result(t, "hdr", "other", "b", 0, reporttest.Scored(23, 10, 0.5, 0), func(r *item.Result) { r.Item.Seed = 8 }), // another measurement
	}
	figures := figuresOf(t, store, results, selection.First)
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
	results := []item.Result{
		reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(20, 10, 0.5, 0.01)),
		reporttest.Result(t, "hdr", "ddiff", "a", 1, reporttest.Scored(25, 10, 0.5, 0.005)),
	}
	for rule, want := range map[selection.Rule]string{selection.First: "a 20 5 - -", selection.Mean: "a 22.5 4 - -", selection.BestPSNR: "a 25 3 - -"} {
		store := reporttest.NewMemory()
		figures := figuresOf(t, store, results, rule)
		expect(t, figures, "residual_vs_psnr_hdr", "ddiff residual_ratio", want)
		captions := strings.ReplaceAll(string(store.Files[KeyCaptions]), "\\", "")
		if !strings.Contains(captions, "("+string(rule)+")") || strings.Contains(captions, selection.OracleNote) != rule.Oracle() {
			t.Errorf("%s: captions\n%s", rule, captions)
		}
	}
}

// Results that no figure can show leave a list of captions and nothing else.
func TestFiguresOfUnusableResults(t *testing.T) {
	t.Parallel()
	nothing := func(r *item.Result) { r.Metrics = item.Metrics{} }
	wrong := func(r *item.Result) {
		r.Metrics = item.Metrics{"psnr": math.NaN(), "residual": math.Inf(1), "baseline_psnr": math.Inf(-1)}
		r.Seconds = math.NaN()
	}
	for name, results := range map[string][]item.Result{
		"none":       nil,
		"all failed": {reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Ended(item.OutcomeFailed, "x"))},
		"no scores":  {reporttest.Result(t, "hdr", "ddiff", "a", 0, nothing), reporttest.Result(t, "hdr", "other", "a", 0, nothing)},
		"undefined":  {reporttest.Result(t, "hdr", "ddiff", "a", 0, wrong), reporttest.Result(t, "hdr", "ddiff", "a", 0, wrong, reporttest.With(0.1, `{"steps":100}`))},
	} {
		store := reporttest.NewMemory()
		n, err := WriteFigures(t.Context(), store, Campaign{}, reporttest.Stream(results))
		if n != 0 || err != nil || len(store.Files) != 1 || !strings.Contains(string(store.Files[KeyCaptions]), "No figures") {
			t.Errorf("%s: %d figures, %d files, error %v", name, n, len(store.Files), err)
		}
	}
	store := reporttest.NewMemory()
	if figures := figuresOf(t, store, []item.Result{reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(20, 10, 0.5, 0))}, selection.First); len(figures) != 1 {
		t.Errorf("one item has %d figures, want the residual", len(figures))
	}
}

func TestStaleFilesAreRemoved(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(*reporttest.Memory) result.Files{
		"store":  func(m *reporttest.Memory) result.Files { return m },
		"folder": func(m *reporttest.Memory) result.Files { return result.Folder{Files: m} },
	} {
		store := reporttest.NewMemory()
		kept := []string{
			"figures/mine.svg", "figures/convergence_notes.txt", "figures/convergence_x/y.svg", "convergence_x.svg", "figures/pairs_lena.png",
			"figures/psnr_vs_paper.csv", "figures/psnr_vs_paper.svg", "sheets/mine.png", "sheets/hdr.txt", "sheets/runs/mine/mean.png", "mosaic.png.bak",
		}
		stale := []string{
			"figures/convergence_old.svg", "figures/convergence_old.csv", "figures/psnr_vs_sigma_hdr.svg", "figures/psnr_vs_sigma_hdr.csv",
			"sheets/motion_deblur.png", "sheets/runs/" + strings.Repeat("0", 64) + "/mean.png",
		}
		for _, key := range append(slices.Clone(stale), kept...) {
			store.Files[key] = []byte("x")
		}
		for _, key := range []string{"figures/convergence_old.csv", "figures/psnr_vs_sigma_hdr.csv"} {
			store.Files[key] = []byte("panel,series,x_name,x,y_name,y,low,high,n,image,item\n")
		}
		results := []item.Result{reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(20, 10, 0.5, 0))}
		if _, err := Write(t.Context(), wrap(store), testCampaign(), reporttest.Stream(results)); err != nil {
			t.Fatal(err)
		}
		for _, key := range kept {
			if store.Files[key] == nil {
				t.Errorf("%s: %s, which is of no report, was removed", name, key)
			}
		}
		for _, key := range stale {
			if store.Files[key] != nil {
				t.Errorf("%s: %s remains", name, key)
			}
		}
		if store.Files["figures/residual_vs_psnr_hdr.svg"] == nil {
			t.Errorf("%s: no figure was written", name)
		}
	}
}

// TestHostileFigures: with a script in every name, no figure, table or caption has a formula or a tag, and a browser shows all figures.
func TestHostileFigures(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	var results []item.Result
	for _, sigma := range []float64{0.05, 0.1} {
		for _, name := range []string{hostile, "=cmd()"} {
			for _, method := range []string{hostile, hostile + "2"} {
				r := reporttest.Result(t, hostile, method, name, 0, reporttest.Scored(25+sigma, 20, 0.7, 0.001), reporttest.With(sigma, `{"</text><script>":"\u0000<script>"}`))
				reporttest.Traced(t, store, &r, []float64{1, 2}, []float64{3, 4})
				results = append(results, r)
			}
		}
	}
	figuresOf(t, store, results, selection.First)
	for key, data := range store.Files {
		switch filepath.Ext(key) {
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
	dir := t.TempDir()
	store.Export(t, dir)
	var index strings.Builder
	index.WriteString("<!DOCTYPE html><html><body>")
	count := 0
	for _, key := range slices.Sorted(maps.Keys(store.Files)) {
		if filepath.Ext(key) == ".svg" {
			fmt.Fprintf(&index, "<img src=%q>", key)
			count++
		}
	}
	index.WriteString(`<script>addEventListener("load", () => {
  const images = [...document.images];
  document.documentElement.dataset.wide = images.filter((i) => i.naturalWidth > 300 && i.naturalHeight > 100).length;
});</script></body></html>`)
	path := filepath.Join(dir, "figures.html")
	reporttest.Must(t, os.WriteFile(path, []byte(index.String()), 0o644))
	if got := state(t, browse(t, path, ""), "wide"); got != fmt.Sprint(count) || count < 5 {
		t.Errorf("the browser shows %s of %d figures", got, count)
	}
	// The document itself: the browser replaces what is not well-formed by an error message, and would run a script.
	var svg string
	for key := range store.Files {
		if filepath.Ext(key) == ".svg" && strings.HasPrefix(key, "psnr_vs_sigma_") {
			svg = filepath.Join(dir, key)
		}
	}
	document := browse(t, svg, "")
	if !strings.Contains(document, "<title>") || strings.Contains(document, "parsererror") || strings.Contains(document, "<script>") {
		t.Errorf("the browser shows %.400q", document)
	}
}

// TestLabelsOfFigures: in a browser no text of a figure is cut or over another one, whatever the ranges are, and dark pages get dark figures.
func TestLabelsOfFigures(t *testing.T) {
	t.Parallel()
	var index strings.Builder
	index.WriteString("<!DOCTYPE html><html><body>")
	for _, log := range []bool{false, true} {
		for _, columns := range []int{1, 2, 3} {
			c := chart.Chart{Width: chart.TwoColumns, Columns: columns}
			for i, high := range []float64{1e-5, 1, 7.3, 99.9, 123456, 1e9} {
				points := []chart.Point{chart.At(high/300, high/1000), chart.At(high, high)}
				axis := chart.Axis{Label: strings.Repeat("a long label ", 9), Log: log}
				c.Panels = append(c.Panels, chart.Panel{Title: axis.Label, X: axis, Y: axis, Diagonal: i == 3, Series: []chart.Series{{
					Label: strings.Repeat("approach ", 4*i+1), Kind: chart.Kind(i % 3), Points: points,
				}}})
			}
			c.Panels[1].X.Ticks = []float64{0.125, 0.25, 0.375, 0.5, 1}
			index.Write(c.SVG())
		}
	}
	index.WriteString(`<script>addEventListener("load", async () => {
  const out = document.documentElement.dataset;
  const faults = [];
  for (const svg of document.querySelectorAll("svg")) {
    const paper = svg.getBoundingClientRect();
    const boxes = [...svg.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
    out.texts = Number(out.texts ?? 0) + boxes.length;
    boxes.forEach(([text, a], i) => {
      if (a.left < paper.left || a.right > paper.right || a.top < paper.top || a.bottom > paper.bottom) faults.push(text + " is cut");
      for (const [other, b] of boxes.slice(i + 1)) {
        if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2) faults.push(text + " is over " + other);
      }
    });
  }
  out.faults = faults.join("; ");
  const colour = async (scheme) => {
    const image = new Image();
    image.style.colorScheme = scheme;
    image.src = "data:image/svg+xml;base64," + btoa(unescape(encodeURIComponent(new XMLSerializer().serializeToString(document.querySelector("svg")))));
    document.body.append(image);
    await image.decode();
    const canvas = document.createElement("canvas").getContext("2d");
    document.body.append(canvas.canvas);
    canvas.canvas.style.colorScheme = scheme;
    canvas.drawImage(image, 0, 0);
    return canvas.getImageData(2, 2, 1, 1).data[0];
  };
  out.colours = await colour("light") + " " + await colour("dark");
});</script></body></html>`)
	path := filepath.Join(t.TempDir(), "labels.html")
	reporttest.Must(t, os.WriteFile(path, []byte(index.String()), 0o644))
	document := browse(t, path, "")
	wantStates(t, document, map[string]string{"faults": "", "colours": "255 16"})
	if n, _ := strconv.Atoi(state(t, document, "texts")); n < 400 {
		t.Errorf("%d texts", n)
	}
}

func TestManyProblemsAreBounded(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	var results []item.Result
	for i := range 16 + 3 {
		results = append(results, reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(20, 10, 0.5, 0), reporttest.With(float64(i+1)/100, `{"steps":2}`)))
	}
	figures := figuresOf(t, store, results, selection.First)
	if len(figures) != 1+16 {
		t.Errorf("%d figures", len(figures))
	}
	if got := strings.Count(string(store.Files[KeyCaptions]), "The first 16 of 19 problems have such figures."); got != 16 {
		t.Errorf("%d captions state the bound", got)
	}
	if got := len(figures["psnr_vs_sigma_hdr"]["ddiff psnr"]); got != 16+3 {
		t.Errorf("%d points of all problems", got)
	}
}

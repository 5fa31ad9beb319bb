package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/regular"
	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/comparison"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/result"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/sweep"
	"ddiff/internal/report/table"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// noiseLevels has two photographs at each of four noise levels: a number, 30 and 100 photons beside it, and auto with another estimate for
// each photograph. The PSNR of a level is 20, 30, 40, 50, and of the second photograph 1 more. gain is added to it.
func noiseLevels(t *testing.T, method string, gain float64) []item.Result {
	t.Helper()
	var out []item.Result
	for k, level := range []struct {
		photons   float64
		estimated bool
	}{{0, false}, {30, false}, {100, false}, {0, true}} {
		for i, name := range []string{"a", "b"} {
			out = append(out, reporttest.Result(t, "hdr", method, name, 0, reporttest.Scored(20+10*float64(k)+float64(i)+gain, 15, 0.5, 0.001), func(r *item.Result) {
				r.Item.Photons, r.Item.SigmaEstimated = level.photons, level.estimated
				if level.estimated {
					r.Item.Sigma = []float64{0.06, 0.0603}[i]
				}
				if level.photons > 0 {
					r.Metrics["noise_variance"] = 0.004
				}
				r.Item.Solver = json.RawMessage(fmt.Sprintf(`{"noise_std":%g,"steps":5}`, r.Item.Sigma))
			}))
		}
	}
	return out
}

// TestNoiseLevelsAreNotPooled: photons, estimated and given noise levels are problems of their own in the table, the page, results.csv, the
// figures and comparisons, and no mean is over two of them.
func TestNoiseLevelsAreNotPooled(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	results := noiseLevels(t, "diffpir", 0)
	s, err := Write(t.Context(), store, testCampaign(), reporttest.Stream(results))
	reporttest.Must(t, err)
	type row struct {
		sigma   string
		photons float64
	}
	want := map[row]float64{{"0.05", 0}: 20.5, {"0.05", 30}: 30.5, {"0.05", 100}: 40.5, {"auto", 0}: 50.5}
	if len(s.Rows) != len(want) || !s.Varying.Sigma || !s.Varying.Photons {
		t.Fatalf("%d rows, %+v", len(s.Rows), s.Varying)
	}
	for i := range s.Rows {
		r := &s.Rows[i]
		if mean, known := want[row{r.Sigma.String(), r.Photons}]; !known || r.PSNR().Mean != mean || r.Images != 2 {
			t.Errorf("σ %s, %g photons: mean %g over %d images, want %g", r.Sigma, r.Photons, r.PSNR().Mean, r.Images, mean)
		}
	}
	for _, format := range []table.Format{table.FormatText, table.FormatMarkdown, table.FormatLaTeX} {
		var out bytes.Buffer
		if err := table.Write(&out, s, format); err != nil || !strings.Contains(strings.ToLower(out.String()), "photons") || !strings.Contains(out.String(), "auto") {
			t.Errorf("%s (%v):\n%s", format, err, out.String())
		}
	}
	lines := strings.Split(strings.TrimSpace(string(store.Files[KeyCSV])), "\n")
	head := strings.Split(lines[0], ",")
	at := func(line, column string) string { return strings.Split(line, ",")[slices.Index(head, column)] }
	ratios := map[string]string{"": "1.4", "30": "1.25", "100": "1.25"} // 0.001 over 0.05² and over 0.004, plus 1
	for _, line := range lines[1:] {
		it := &results[slices.IndexFunc(results, func(r item.Result) bool { return r.Item.ID == at(line, "item") })].Item
		photons := ""
		if it.Photons > 0 {
			photons = sweep.Exact(it.Photons)
		}
		if at(line, "photons") != photons || at(line, "sigma") != sweep.Exact(it.Sigma) || (at(line, "sigma_estimated") == "true") != it.SigmaEstimated {
			t.Errorf("%+v has the line %s", it, line)
		}
		if got := at(line, "residual_ratio"); got != ratios[photons] && !it.SigmaEstimated {
			t.Errorf("%g photons: the ratio is %s, want %s", it.Photons, got, ratios[photons])
		}
	}
	index := string(store.Files[KeyPage])
	reporttest.Contains(t, index, `"photons":30`, `"photons":100`, `"sigma":"auto"`)
	figures := figuresOf(t, reporttest.NewMemory(), results, selection.First)
	expect(t, figures, "psnr_vs_photons_hdr", "diffpir psnr", "30 30.5 24.1469 36.8531 2", "100 40.5 34.1469 46.8531 2")
	for _, problem := range []string{"hdr_sigma0.05", "hdr_sigma0.05_30_photons", "hdr_sigma0.05_100_photons", "hdr_sigmaauto"} {
		n := 0
		for _, points := range figures["residual_vs_psnr_"+problem] {
			n += len(points)
		}
		if n != 2 {
			t.Errorf("the figure of %s has %d points, want 2: %v", problem, n, figures["residual_vs_psnr_"+problem])
		}
	}

	// Another method with 1 dB more: four pairs, each of one level.
	v, err := comparison.Compare(reporttest.Stream(noiseLevels(t, "ddrm", 1)), reporttest.Stream(results), nil, "", "")
	if err != nil || len(v.Rows) != 4 || len(v.OnlyA)+len(v.OnlyB) != 0 {
		t.Fatalf("%+v, %v", v, err)
	}
	for _, r := range v.Rows {
		if r.Difference.Mean != 1 || r.Difference.N != 2 {
			t.Errorf("difference %+v", r.Difference)
		}
	}
	var text bytes.Buffer
	if err := v.WriteText(&text, 1); err != nil || !strings.Contains(text.String(), "30 photons") {
		t.Errorf("%v: %s", err, text.String())
	}
}

// TestFilterNoiseLevels selects by photons, and by a noise level that was estimated.
func TestFilterNoiseLevels(t *testing.T) {
	t.Parallel()
	results := noiseLevels(t, "diffpir", 0)
	for where, want := range map[string]int{
		"photons=30": 2, "photons=30,1e2": 4, "photons=7": 0, "sigma=auto": 2, "sigma=0.05": 6, "sigma=0.0603": 1, "sigma_estimated=true": 2, "sigma=auto,0.05": 8,
	} {
		wantSelected(t, results, where, want)
	}
	f, err := result.ParseFilter([]string{"photons=30"})
	reporttest.Must(t, err)
	for _, err := range f.Select(reporttest.Stream(results[:2])) {
		if err == nil || !strings.Contains(err.Error(), "photons: no result has this property") {
			t.Errorf("without photons: %v", err)
		}
	}
}

// TestPublishedWithPhotons: a published figure at a noise level of the same σ is not comparable with photons.
func TestPublishedWithPhotons(t *testing.T) {
	t.Parallel()
	p := parsePublished(t, "task,method,psnr,sigma\nhdr,diffpir,30,0.05\n")
	s := summaryOf(t, noiseLevels(t, "diffpir", 0), selection.First)
	for i, r := range s.Rows {
		differ := strings.Contains(compared(t, aggregate.Summary{Rows: s.Rows[i : i+1]}, p, table.FormatText), "NOT COMPARABLE, because of sigma")
		if same := r.Sigma == 0.05 && r.Photons == 0; differ == same {
			t.Errorf("row %d, σ %s with %g photons: differs %v", i, r.Sigma, r.Photons, differ)
		}
	}
}

// in sets the precision that a campaign fixes, "" for none, and the one that the worker used.
func in(fixed, used manifest.Precision) func(*item.Result) {
	return func(r *item.Result) { r.Item.Precision, r.Runtime.Precision = fixed, used }
}

// Results of campaigns with different fixed precisions have rows of their own, which are compared on equal measurements;
// tables, notes and results.csv name the precisions. A failed item belongs to the row of its campaign.
func TestPrecisionsHaveRows(t *testing.T) {
	t.Parallel()
	var results []item.Result
	for i, name := range []string{"1.png", "2.png", "3.png"} {
		score := float64(25 + i)
		results = append(results,
			reporttest.Result(t, "hdr", "ddiff", name, 0, reporttest.Scored(score, 20, 0.5, 0), in("float32", "float32")),
			reporttest.Result(t, "hdr", "ddiff", name, 0, reporttest.Scored(score-0.5, 20, 0.5, 0), in("bfloat16", "bfloat16")))
	}
	results = append(results, reporttest.Result(t, "hdr", "ddiff", "4.png", 0, unreadable, in("bfloat16", "")))
	s := summaryOf(t, results, selection.First)
	if len(s.Rows) != 2 || !s.Varying.Precision || s.Rows[0].Precisions["bfloat16"] != 3 || s.Rows[0].Failed != 1 || s.Rows[1].Precisions["float32"] != 3 {
		t.Fatalf("rows %+v, varying %+v", s.Rows, s.Varying)
	}
	s = summaryOf(t, results[:6], selection.First)
	if len(s.Comparisons) != 1 || s.Comparisons[0].A != "ddiff bfloat16" || s.Comparisons[0].Difference.N != 3 || s.Comparisons[0].Difference.Mean != -0.5 {
		t.Errorf("comparisons %+v", s.Comparisons)
	}
	var shown strings.Builder
	reporttest.Must(t, table.Write(&shown, s, table.FormatMarkdown))
	reporttest.Contains(t, shown.String(), "| precision |", "| bfloat16 |", "| float32 |")
	for condition, want := range map[string]int{"precision=bfloat16": 4, "precision=float32": 3, "precision=float16": 0} {
		wantSelected(t, results, condition, want)
	}
}

// Results with and without tiles, and with and without observed pixels, have rows of their own, which are compared on equal measurements.
func TestTilesHaveRows(t *testing.T) {
	t.Parallel()
	var results []item.Result
	for i, name := range []string{"1.png", "2.png", "3.png"} {
		for k, change := range []func(*item.Result){
			func(*item.Result) {},
			func(r *item.Result) { r.Item.Tile, r.Item.Overlap = 64, 16 },
			func(r *item.Result) { r.Item.Tile, r.Item.Overlap = 64, 32 },
			func(r *item.Result) { r.Item.KeepObserved = true },
		} {
			results = append(results, reporttest.Result(t, "inpaint", "ddiff", name, 0, reporttest.Scored(25+float64(i)-float64(k), 20, 0.5, 0), change))
		}
	}
	s := summaryOf(t, results, selection.First)
	var got []string
	for _, c := range s.Comparisons[:3] {
		got = append(got, fmt.Sprintf("%s: %g of %d", c.B, c.Difference.Mean, c.Difference.N))
	}
	if want := []string{"ddiff keep_observed=true: 3 of 3", "ddiff tile=64 overlap=16: 1 of 3", "ddiff tile=64 overlap=32: 2 of 3"}; !slices.Equal(got, want) {
		t.Errorf("comparisons %q, want %q", got, want)
	}
	for condition, want := range map[string]int{"tile=64": 6, "tile=0": 6, "overlap=32": 3, "keep_observed=true": 3, "keep_observed=false": 9} {
		wantSelected(t, results, condition, want)
	}
}

// Images that keep their sizes share a row whether a tile covers them or not, unless one campaign cannot have restored all of them.
func TestTilesOfImagesThatKeepTheirSizes(t *testing.T) {
	t.Parallel()
	sized := func(name string, side, tile, overlap int) item.Result {
		return reporttest.Result(t, "denoise", "ddiff", name, 0, reporttest.Scored(25, 20, 0.5, 0), func(r *item.Result) {
			r.Item.Fit, r.Item.Width, r.Item.Height, r.Item.Tile, r.Item.Overlap = item.FitPad, side, side, tile, overlap
		})
	}
	for name, tt := range map[string]struct {
		results []item.Result
		rows    []int // images
	}{
		"covered":              {[]item.Result{sized("a", 32, 0, 0), sized("b", 64, 0, 0), sized("c", 128, 64, 16)}, []int{3}},
		"larger without tiles": {[]item.Result{sized("a", 32, 0, 0), sized("b", 128, 0, 0), sized("c", 128, 64, 16)}, []int{2, 1}},
		"both ways":            {[]item.Result{sized("a", 128, 0, 0), sized("a", 128, 64, 16)}, []int{1, 1}},
		"two overlaps":         {[]item.Result{sized("a", 128, 64, 16), sized("b", 128, 64, 32)}, []int{1, 1}},
		"no tiles":             {[]item.Result{sized("a", 32, 0, 0), sized("b", 128, 0, 0)}, []int{2}},
	} {
		var rows []int
		for _, r := range summaryOf(t, tt.results, selection.First).Rows {
			rows = append(rows, r.Images)
		}
		if !slices.Equal(rows, tt.rows) {
			t.Errorf("%s: images by row %v, want %v", name, rows, tt.rows)
		}
	}
}

// Two operator files of one name, two masks of one image and two ranges of measurements are problems of their own.
func TestFilesOfTasksHaveRows(t *testing.T) {
	t.Parallel()
	file := func(text string) *item.Source {
		return &item.Source{Path: "same.name", SHA256: regular.SHA256([]byte(text))}
	}
	for field, change := range map[string]func(it *item.Item, text string){
		"operator": func(it *item.Item, text string) { it.Operator = file(text) },
		"mask":     func(it *item.Item, text string) { it.Mask = file(text) },
		"kernel":   func(it *item.Item, text string) { it.Kernel = file(text) },
		"measurement_range": func(it *item.Item, text string) {
			it.MeasurementRange = &item.ValueRange{0, map[string]float64{"one": 1, "two": 255}[text]}
		},
	} {
		var results []item.Result
		for k, text := range []string{"one", "two"} {
			for _, method := range []string{"ddiff", "dpir"} {
				results = append(results, reporttest.Result(t, "inpaint", method, "a", 0, reporttest.Scored(25+float64(k), 20, 0.5, 0),
					func(r *item.Result) { change(&r.Item, text) }))
			}
		}
		s := summaryOf(t, results, selection.First)
		if len(s.Rows) != 4 || len(s.Comparisons) != 2 || !s.Varying.Params || s.Rows[0].PSNR().Mean == s.Rows[2].PSNR().Mean {
			t.Fatalf("%s: rows %+v", field, s.Rows)
		}
		for i := range s.Rows {
			wantSelected(t, results, s.Rows[i].VaryingParams, 2)
		}
	}
}

// Masks of a list, of which each belongs to an image, share a row, also where one image has two of them.
func TestMasksOfAListShareARow(t *testing.T) {
	t.Parallel()
	var results []item.Result
	for k, image := range []string{"a", "b", "c", "a"} {
		results = append(results, reporttest.Result(t, "inpaint", "ddiff", image, 0, reporttest.Scored(25, 20, 0.5, 0), func(r *item.Result) {
			r.Item.Mask = &item.Source{Path: "mask.png", SHA256: regular.SHA256([]byte{byte(k)})}
		}))
	}
	if s := summaryOf(t, results, selection.First); len(s.Rows) != 1 || s.Rows[0].Images != 3 {
		t.Errorf("rows %+v", s.Rows)
	}
}

// wantSelected checks the number of results that a condition selects.
func wantSelected(t *testing.T, results []item.Result, condition string, want int) {
	t.Helper()
	f, err := result.ParseFilter([]string{condition})
	reporttest.Must(t, err)
	n := 0
	for _, err := range f.Select(reporttest.Stream(results)) {
		reporttest.Must(t, err)
		n++
	}
	if n != want {
		t.Errorf("%s selects %d results, want %d", condition, n, want)
	}
}

// A campaign that fixes float32, and one that fixes none on workers that compute in float32, have two rows. They are told apart
// in the table and in the comparison.
func TestUnfixedPrecisionIsNamed(t *testing.T) {
	t.Parallel()
	var results []item.Result
	for _, name := range []string{"1.png", "2.png", "3.png"} {
		results = append(results,
			reporttest.Result(t, "hdr", "ddiff", name, 0, reporttest.Scored(25, 20, 0.5, 0), in("", "float32")),
			reporttest.Result(t, "hdr", "ddiff", name, 0, reporttest.Scored(25, 20, 0.5, 0), in("float32", "float32")))
	}
	s := summaryOf(t, results, selection.First)
	if len(s.Comparisons) != 1 || s.Comparisons[0].A != "ddiff float32 (not fixed)" || s.Comparisons[0].B != "ddiff float32" {
		t.Errorf("comparisons %+v", s.Comparisons)
	}
	var shown strings.Builder
	reporttest.Must(t, table.Write(&shown, s, table.FormatMarkdown))
	reporttest.Contains(t, shown.String(), "| precision |", "| float32 (not fixed) |", "| float32 |")
}

// Workers of different defaults restore a campaign that fixes no precision: its report names all of them.
func TestMixedPrecisionsAreNamed(t *testing.T) {
	t.Parallel()
	score := reporttest.Scored(25, 20, 0.5, 0)
	results := []item.Result{
		reporttest.Result(t, "hdr", "ddiff", "1.png", 0, score, in("", "float32")), reporttest.Result(t, "hdr", "ddiff", "2.png", 0, score, in("", "float32")),
		reporttest.Result(t, "hdr", "ddiff", "3.png", 0, score, in("", "float16")), reporttest.Result(t, "hdr", "ddiff", "4.png", 0, score),
		reporttest.Result(t, "hdr", "ddiff", "5.png", 0, reporttest.Ended(item.OutcomeFailed, "bad")),
	}
	s := summaryOf(t, results, selection.First)
	if len(s.Rows) != 1 || s.Varying.Precision || len(s.Rows[0].Precisions) != 2 {
		t.Fatalf("rows %+v, varying %+v", s.Rows, s.Varying)
	}
	if note := table.Of(s, "-").Notes[0].Text; !strings.Contains(note, ", float16 and float32") {
		t.Errorf("the first note is %q", note)
	}
	var out bytes.Buffer
	reporttest.Must(t, table.WriteCSV(&out, reporttest.Stream(results), nil))
	rows, err := csv.NewReader(&out).ReadAll()
	reporttest.Must(t, err)
	at := slices.Index(rows[0], "precision")
	if at < 0 {
		t.Fatalf("the columns are %v", rows[0])
	}
	var got []string
	for _, row := range rows[1:] {
		got = append(got, row[at])
	}
	if !slices.Equal(got, []string{"float32", "float32", "float16", "", ""}) {
		t.Errorf("the precisions are %q", got)
	}
	// One precision needs no note; the head of the table and the page name it.
	s = summaryOf(t, results[:2], selection.First)
	notes := table.Texts(table.Of(s, "-").Notes)
	if text := strings.Join(notes[1:], " "); strings.Contains(text, "precision") || !strings.Contains(notes[0], "float32") {
		t.Errorf("notes %q", notes)
	}
	if page := pageOf(t, reporttest.NewMemory(), testCampaign(), results[:2]); !strings.Contains(page, ", float32, steps=") {
		t.Error("the page does not name the precision")
	}
}

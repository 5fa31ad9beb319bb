package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/comparison"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/statistic"
	"ddiff/internal/report/sweep"
	"ddiff/internal/report/table"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

func TestSweepsAreNotPooled(t *testing.T) {
	t.Parallel()
	s, err := aggregate.Summarize(reporttest.Stream(reporttest.SweepResults(t)), operator.Builtin(), selection.First, nil)
	reporttest.Must(t, err)
	shown := table.Of(s, "-")
	var got []string
	for i := range s.Rows {
		r := &s.Rows[i]
		got = append(got, strings.ReplaceAll(texts(shown.Lines[i][:slices.IndexFunc(shown.Columns, func(c table.Column) bool { return !c.Label })]), " ", " | "))
		if r.Images != 2 || r.PSNR().N != 2 {
			t.Errorf("row %v: %d images, n = %d, want 2", got[i], r.Images, r.PSNR().N)
		}
		// The PSNR of the images differ by 1: s = 0.70710678, half = 12.7062047 * s / sqrt(2).
		if h := *r.PSNR().HalfWidth; !(math.Abs(h-6.35310237) <= 1e-7) {
			t.Errorf("row %v: half-width %g, want that of two images", got[i], h)
		}
	}
	want := []string{
		"super_resolution | factor=2 | 0.05 | ddiff | gamma0=8", "super_resolution | factor=2 | 0.05 | ddiff | gamma0=10",
		"super_resolution | factor=8 | 0.05 | ddiff | gamma0=8", "super_resolution | factor=8 | 0.05 | ddiff | gamma0=10",
		"gaussian_deblur | - | 0.02 | ddiff | gamma0=8", "gaussian_deblur | - | 0.02 | ddiff | gamma0=10",
		"gaussian_deblur | - | 0.05 | ddiff | gamma0=8", "gaussian_deblur | - | 0.05 | ddiff | gamma0=10",
		"gaussian_deblur | - | 0.1 | ddiff | gamma0=8", "gaussian_deblur | - | 0.1 | ddiff | gamma0=10",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("rows:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(s.Comparisons) != 5 {
		t.Fatalf("%d comparisons, want one per problem", len(s.Comparisons))
	}
	for _, c := range s.Comparisons {
		if c.Refused != "" || c.Difference.N != 2 || c.Difference.Mean != -2 {
			t.Errorf("%s, %s: %s - %s = %+v, refused %q", c.Task, c.Problem, c.A, c.B, c.Difference, c.Refused)
		}
	}
}

// TestOneImageIsOneCluster gives one photograph several seeds and a second name.
func TestOneImageIsOneCluster(t *testing.T) {
	t.Parallel()
	var results []item.Result
	for i, name := range []string{"a", "a", "copy of a", "b"} {
		results = append(results, reporttest.Result(t, "hdr", "ddiff", name, 0, reporttest.Scored(20+float64(i), 15, 0.5, 0), func(r *item.Result) {
			r.Item.Seed = uint64(i)
			if name != "b" {
				r.Item.Image.SHA256 = strings.Repeat("0a", 32)
			}
		}))
	}
	r := summaryOf(t, results, selection.First).Rows[0]
	want := statistic.ClusterMean([]float64{20, 21, 22, 23}, []uint64{1, 1, 1, 2})
	if r.Images != 2 || r.Measurements != 4 || r.PSNR().N != 2 || r.PSNR().Measurements != 4 || *r.PSNR().HalfWidth != *want.HalfWidth {
		t.Errorf("%d images, %d measurements, PSNR %+v ± %g, want n = 2 ± %g",
			r.Images, r.Measurements, r.PSNR(), *r.PSNR().HalfWidth, *want.HalfWidth)
	}
}

// TestSecondNameOfAMeasurementCountsOnce gives one of three photographs a second name: the figures are those of a
// report without it, as in a report over stored results, which have one folder for both names.
func TestSecondNameOfAMeasurementCountsOnce(t *testing.T) {
	t.Parallel()
	var plain, again []item.Result
	for i, name := range []string{"a", "b", "c", "copy of c"} {
		for k, method := range []string{"ddiff", "ddiff_hqs"} {
			for run := range 2 {
				score := reporttest.Scored(20+float64(min(i, 2)*min(i, 2))+0.5*float64(k*min(i, 2))+0.1*float64(run), 15, 0.5, 0)
				r := reporttest.Result(t, "hdr", method, name, run, score, func(r *item.Result) {
					if i == 3 {
						r.Item.Image.SHA256 = plain[len(plain)-1].Item.Image.SHA256
					}
				})
				if again = append(again, r); i < 3 {
					plain = append(plain, r)
				}
			}
		}
	}
	want, got := summaryOf(t, plain, selection.Mean), summaryOf(t, again, selection.Mean)
	if want.Items != 12 || got.Items != 16 || got.Done != 16 || got.Rows[0].Items != 8 {
		t.Errorf("%d and %d items", want.Items, got.Items)
	}
	for i, r := range got.Rows {
		if w := want.Rows[i]; r.Measurements != 3 || r.PSNR().Mean != w.PSNR().Mean || *r.PSNR().HalfWidth != *w.PSNR().HalfWidth || r.PSNR().Measurements != 0 {
			t.Errorf("%s: %d measurements, PSNR %+v; without the second name %+v", r.Method, r.Measurements, r.PSNR(), w.PSNR())
		}
	}
	if c, w := got.Comparisons[0], want.Comparisons[0]; c.Difference.Mean != w.Difference.Mean || c.Difference.N != 3 || c.Refused != "" {
		t.Errorf("difference %+v, without the second name %+v", c, w)
	}
	p := parsePublished(t, "task,method,psnr,runs,images\nhdr,ddiff,30,2,3\n")
	if text := compared(t, got, p, table.FormatText); !strings.Contains(text, "Comparable, if") {
		t.Errorf("other than 2 runs of 3 images: %s", text)
	}
}

// unreadable is an item that failed before its size, parameters and settings were known.
func unreadable(r *item.Result) {
	reporttest.Ended(item.OutcomeFailed, "decode: unexpected EOF")(r)
	r.Item.Width, r.Item.Height, r.Item.Solver, r.Item.Prior, r.Item.Params = 0, 0, json.RawMessage("null"), "", nil
	r.Item.Image.SHA256 = ""
}

func TestUnreadableItemsCountInTheirRow(t *testing.T) {
	t.Parallel()
	score := reporttest.Scored(25, 20, 0.5, 0)
	params := func(r *item.Result) { r.Item.Params = map[string]float64{"gain": 2} }
	results := []item.Result{
		reporttest.Result(t, "hdr", "a", "1.png", 0, score, params), reporttest.Result(t, "hdr", "b", "1.png", 0, score, params),
		reporttest.Result(t, "hdr", "a", "2.png", 0, unreadable), reporttest.Result(t, "hdr", "b", "2.png", 0, unreadable),
	}
	s := summaryOf(t, results, selection.First)
	if len(s.Rows) != 2 || s.Rows[0].Items != 2 || s.Rows[0].Failed != 1 || s.Rows[1].Failed != 1 || s.Varying != (aggregate.Varying{}) {
		t.Fatalf("rows = %+v, varying %+v", s.Rows, s.Varying)
	}
	if c := s.Comparisons[0]; c.Refused != "" || c.LeftOut != 1 || c.Difference.N != 1 {
		t.Errorf("comparison = %+v", c)
	}
	// In a sweep over settings the row is unknown: the items keep a row of their own.
	other := reporttest.Result(t, "hdr", "a", "1.png", 0, score, params, func(r *item.Result) { r.Item.Solver = json.RawMessage(`{"steps":5}`) })
	s = summaryOf(t, append(results, other), selection.First)
	if len(s.Rows) != 4 || s.Items != 5 || s.Failed != 2 || s.Done != 3 {
		t.Errorf("rows = %+v", s.Rows)
	}
	for _, c := range s.Comparisons {
		if c.A == c.B {
			t.Errorf("comparison of %s with itself", c.A)
		}
		if c.Refused != "" || c.LeftOut != 1 || c.Difference.N != 1 {
			t.Errorf("comparison with an item that failed early = %+v", c)
		}
	}
}

// An image that one method cannot restore, and of which its settings are unknown, is left out of its comparisons.
func TestItemsThatFailEarlyAreLeftOut(t *testing.T) {
	t.Parallel()
	var sides [2][]item.Result
	for k, method := range []string{"a", "b"} {
		for i, name := range []string{"1.png", "2.png"} {
			sides[k] = append(sides[k], reporttest.Result(t, "hdr", method, name, 0, reporttest.Scored(25+float64(i), 20, 0.5, 0)))
		}
	}
	sides[1] = append(sides[1][:1], reporttest.Result(t, "hdr", "b", "2.png", 0, unreadable))
	s := summaryOf(t, slices.Concat(sides[0], sides[1]), selection.First)
	if c := s.Comparisons[0]; c.Refused != "" || c.LeftOut != 1 || c.Difference.N != 1 {
		t.Errorf("comparison = %+v", c)
	}
	v, err := comparison.Compare(reporttest.Stream(sides[0]), reporttest.Stream(sides[1]), nil, "", "")
	if err != nil || v.Rows[0].LeftOut != 1 || v.Rows[0].Difference.N != 1 {
		t.Errorf("comparison = %+v, %v", v, err)
	}
	// Measurements count, not names, and those of another seed are others.
	seeded := func(r *item.Result) { r.Item.Seed = 8 }
	for _, method := range []string{"a", "b"} {
		results := slices.Concat(sides[0], sides[1][:1], []item.Result{
			reporttest.Result(t, "hdr", "a", "1.png", 0, reporttest.Scored(25, 20, 0.5, 0), seeded), reporttest.Result(t, "hdr", "b", "1.png", 0, reporttest.Scored(25, 20, 0.5, 0), seeded),
			reporttest.Result(t, "hdr", "a", "2.png", 0, reporttest.Scored(25, 20, 0.5, 0), seeded), reporttest.Result(t, "hdr", "b", "2.png", 0, reporttest.Scored(25, 20, 0.5, 0), seeded),
		})
		lost := sides[1][1]
		if method == "a" { // b never got the image with the first seed
			seeded(&lost)
		}
		c := summaryOf(t, append(results, lost), selection.First).Comparisons[0]
		if refused := c.Refused != ""; refused != (method == "a") || !refused && c.LeftOut != 1 {
			t.Errorf("lost by %s: %+v", method, c)
		}
	}
}

func TestCSVHasReasonsAndNoFormulas(t *testing.T) {
	t.Parallel()
	results := []item.Result{
		reporttest.Result(t, "hdr", "a", "=1+1", 0, reporttest.Ended(item.OutcomeDead, "killed\nby signal 9")),
		reporttest.Result(t, "hdr", "a", "-2", 0, reporttest.Ended(item.OutcomeFailed, "@x, \"y\"")),
	}
	var out bytes.Buffer
	reporttest.Must(t, table.WriteCSV(&out, reporttest.Stream(results), nil))
	reporttest.Contains(t, out.String(), ",'=1+1,", ",dead,killed?by signal 9,,", ",'-2,", `,failed,"'@x, ""y""",,`)
}

// TestWarningsAreCounted: the summary and its note count the finished items with warnings, and each code once per item.
func TestWarningsAreCounted(t *testing.T) {
	t.Parallel()
	warned := func(codes ...string) func(*item.Result) {
		return func(r *item.Result) {
			for _, code := range codes {
				r.Warnings = append(r.Warnings, item.Warning{Code: code, Text: "text of " + code})
			}
		}
	}
	s := summaryOf(t, []item.Result{
		reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(20, 10, 0.5, 0), warned("residual", "flat")),
		reporttest.Result(t, "hdr", "ddiff", "b", 0, reporttest.Scored(21, 10, 0.5, 0), warned("residual")),
		reporttest.Result(t, "hdr", "ddiff", "c", 0, reporttest.Scored(22, 10, 0.5, 0)),
		reporttest.Result(t, "hdr", "ddiff", "d", 0, reporttest.Ended(item.OutcomeFailed, "no file"), warned("flat")),
		reporttest.Result(t, "inpaint", "ddiff", "a", 0, reporttest.Scored(23, 10, 0.5, 0), warned("flat")),
	}, selection.First)
	items, codes := s.Warned()
	if items != 3 || len(codes) != 2 || codes["residual"] != 2 || codes["flat"] != 2 || s.Rows[0].Warned != 2 || s.Rows[1].Warned != 1 {
		t.Errorf("%d items, %v, rows %d and %d", items, codes, s.Rows[0].Warned, s.Rows[1].Warned)
	}
	const note = "3 of 4 finished items have warnings: flat 2, residual 2; see the column warnings of results.csv."
	if notes := table.Texts(table.Of(s, "-").Notes); !slices.Contains(notes, note) {
		t.Errorf("notes %q, want %q", notes, note)
	}
	// A method of which half of the items have warnings is marked; its problem has no best figure and no p value.
	var suspect []item.Result
	for i := range 8 {
		name := fmt.Sprint("image", i)
		suspect = append(suspect, reporttest.Result(t, "hdr", "ddiff", name, 0, reporttest.Scored(20+float64(i), 10, 0.5, 0), warned([]string{"flat"}[:i%2]...)),
			reporttest.Result(t, "hdr", "dps", name, 0, reporttest.Scored(19, 10, 0.4, 0)))
	}
	var text strings.Builder
	reporttest.Must(t, table.Write(&text, summaryOf(t, suspect, selection.First), table.FormatMarkdown))
	for _, part := range []string{"| ddiff † |", "| dps |", "† At least half", "no test: warnings"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("the table of suspect rows lacks %q:\n%s", part, text.String())
		}
	}
	if strings.Contains(text.String(), "**") || strings.Contains(text.String(), "Wilcoxon") {
		t.Errorf("a suspect row is ranked:\n%s", text.String())
	}
	if html := pageOf(t, reporttest.NewMemory(), testCampaign(), suspect); strings.Count(html, `<tr class="suspect"`) != 1 {
		t.Error("the page does not mark the suspect row")
	}
	without := summaryOf(t, []item.Result{reporttest.Result(t, "hdr", "ddiff", "c", 0, reporttest.Scored(22, 10, 0.5, 0))}, selection.First)
	if notes := strings.Join(table.Texts(table.Of(without, "-").Notes), " "); strings.Contains(notes, "warnings") {
		t.Errorf("without warnings: %q", notes)
	}
}

// TestTunedRowsAreBounded: a note names five rows that were tuned on their own images, and counts the others.
func TestTunedRowsAreBounded(t *testing.T) {
	t.Parallel()
	for rows, more := range map[int]string{5: ".", 5 + 1: "; and of 1 more rows.", 5 + 3: "; and of 3 more rows."} {
		all := []aggregate.Row{{Cell: sweep.Cell{Problem: sweep.Problem{Task: "untuned"}, Approach: sweep.Approach{Method: "ddiff"}}, Images: 9}}
		for i := range rows {
			all = append(all, aggregate.Row{Cell: sweep.Cell{Problem: sweep.Problem{Task: fmt.Sprint("task", i)}, Approach: sweep.Approach{Method: "ddiff"}}, Preset: "natural", Images: 4, TunedImages: 1 + i%4})
		}
		notes := slices.DeleteFunc(table.Texts(table.Of(aggregate.Summary{Rows: all, Varying: aggregate.Varying{Preset: true}}, "-").Notes), func(note string) bool {
			return !strings.Contains(note, "images of the same row")
		})
		if len(notes) != 1 || strings.Count(notes[0], " images of task") != 5 || !strings.HasSuffix(notes[0], more) ||
			!strings.Contains(notes[0], "2 of 4 images of task1 ddiff, preset natural") || strings.Contains(notes[0], "untuned") {
			t.Errorf("%d rows: %q, want the end %q", rows, notes, more)
		}
	}
}

// TestApproachesBeyondTheLines: the figures of a problem draw the first approaches, and state how many others there are.
func TestApproachesBeyondTheLines(t *testing.T) {
	t.Parallel()
	for approaches, want := range map[int]string{10: "", 10 + 1: "Not drawn: 1 further approach.", 10 + 3: "Not drawn: 3 further approaches."} {
		store := reporttest.NewMemory()
		var results []item.Result
		for i := range approaches {
			for _, name := range []string{"a", "b"} {
				results = append(results, reporttest.Result(t, "hdr", fmt.Sprintf("method%02d", i), name, 0, reporttest.Scored(20+float64(i), 10, 0.5, 0.1)))
			}
		}
		figuresOf(t, store, results, selection.First)
		captions := string(store.Files[KeyCaptions])
		if found := strings.Contains(captions, "further approach"); found != (want != "") || !strings.Contains(captions, want) {
			t.Errorf("%d approaches: captions %s\nwant %q", approaches, captions, want)
		}
	}
}

// TestLargeCSV: a store that cannot read a file while it writes gets the complete file, too.
func TestLargeCSV(t *testing.T) {
	t.Parallel()
	reason := strings.Repeat("no such file; ", 400)
	const items = 300
	store := reporttest.NewMemory()
	results := func(yield func(item.Result, error) bool) {
		for i := range items {
			if !yield(reporttest.Result(t, "hdr", "ddiff", fmt.Sprintf("image%03d", i), 0, reporttest.Ended(item.OutcomeFailed, reason)), nil) {
				return
			}
		}
	}
	if _, err := Write(t.Context(), store, testCampaign(), results); err != nil {
		t.Fatal(err)
	}
	csv := string(store.Files[KeyCSV])
	if len(csv) <= 1<<20 || strings.Count(csv, "\n") != items+1 || !strings.HasSuffix(csv, "\n") {
		t.Errorf("results.csv has %d bytes and %d lines", len(csv), strings.Count(csv, "\n"))
	}
}

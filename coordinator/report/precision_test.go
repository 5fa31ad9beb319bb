package report

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"ddiff/coordinator/report/reporttest"
	"ddiff/coordinator/report/result"
	"ddiff/coordinator/report/selection"
	"ddiff/coordinator/report/table"
	"ddiff/manifest"
)

// in sets the precision that a campaign fixes, "" for none, and the one that the worker used.
func in(fixed manifest.Precision, used string) func(*manifest.Result) {
	return func(r *manifest.Result) { r.Item.Precision, r.Runtime.Precision = fixed, used }
}

// Results of campaigns with different fixed precisions have rows of their own, which are compared on equal measurements;
// tables, notes and results.csv name the precisions. A failed item belongs to the row of its campaign.
func TestPrecisionsHaveRows(t *testing.T) {
	t.Parallel()
	var results []manifest.Result
	for i, name := range []string{"1.png", "2.png", "3.png"} {
		score := float64(25 + i)
		results = append(results,
			reporttest.Result(t, "hdr", "ddiff", name, 0, reporttest.Scored(score, 20, 0.5, 0), in("float32", "fp32")),
			reporttest.Result(t, "hdr", "ddiff", name, 0, reporttest.Scored(score-0.5, 20, 0.5, 0), in("bfloat16", "bf16")))
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
	reporttest.Contains(t, shown.String(), "| precision |", "| bfloat16 |", "Several precisions of the score network: 3 items in bfloat16, 3 items in float32.")
	if strings.Contains(shown.String(), "mix them") {
		t.Errorf("no row mixes precisions:\n%s", shown.String())
	}
	for condition, want := range map[string]int{"precision=bfloat16": 4, "precision=float32": 3, "precision=float16": 0} {
		wantSelected(t, results, condition, want)
	}
}

// wantSelected checks the number of results that a condition selects.
func wantSelected(t *testing.T, results []manifest.Result, condition string, want int) {
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
	var results []manifest.Result
	for _, name := range []string{"1.png", "2.png", "3.png"} {
		results = append(results,
			reporttest.Result(t, "hdr", "ddiff", name, 0, reporttest.Scored(25, 20, 0.5, 0), in("", "fp32")),
			reporttest.Result(t, "hdr", "ddiff", name, 0, reporttest.Scored(25, 20, 0.5, 0), in("float32", "fp32")))
	}
	s := summaryOf(t, results, selection.First)
	if len(s.Comparisons) != 1 || s.Comparisons[0].A != "ddiff float32 (not fixed)" || s.Comparisons[0].B != "ddiff float32" {
		t.Errorf("comparisons %+v", s.Comparisons)
	}
	var shown strings.Builder
	reporttest.Must(t, table.Write(&shown, s, table.FormatMarkdown))
	reporttest.Contains(t, shown.String(), "| precision |", "| float32 (not fixed) |", "| float32 |")
}

// Workers of different defaults restore a campaign that fixes no precision: its report says that its means mix them.
func TestMixedPrecisionsAreNamed(t *testing.T) {
	t.Parallel()
	score := reporttest.Scored(25, 20, 0.5, 0)
	results := []manifest.Result{
		reporttest.Result(t, "hdr", "ddiff", "1.png", 0, score, in("", "fp32")), reporttest.Result(t, "hdr", "ddiff", "2.png", 0, score, in("", "fp32")),
		reporttest.Result(t, "hdr", "ddiff", "3.png", 0, score, in("", "fp16")), reporttest.Result(t, "hdr", "ddiff", "4.png", 0, score),
		reporttest.Result(t, "hdr", "ddiff", "5.png", 0, reporttest.Ended(manifest.OutcomeFailed, "bad")),
	}
	s := summaryOf(t, results, selection.First)
	if len(s.Rows) != 1 || s.Varying.Precision || len(s.Rows[0].Precisions) != 2 {
		t.Fatalf("rows %+v, varying %+v", s.Rows, s.Varying)
	}
	const want = "Several precisions of the score network: 1 items in float16, 2 items in float32. " +
		"The means of these rows mix them: hdr ddiff. Set precision in the campaign file to fix one."
	if notes := table.Of(s, "-").Notes; !slices.Contains(notes, want) {
		t.Errorf("the notes are %q, want %q", notes, want)
	}
	var out bytes.Buffer
	reporttest.Must(t, table.WriteCSV(t.Context(), &out, reporttest.Stream(results), nil))
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
	notes := table.Of(s, "-").Notes
	if text := strings.Join(notes[1:], " "); strings.Contains(text, "precision") || !strings.Contains(notes[0], "float32") {
		t.Errorf("notes %q", notes)
	}
	if page := pageOf(t, reporttest.NewMemory(), testCampaign(), results[:2]); !strings.Contains(page, "<dt>Precision</dt><dd>float32</dd>") {
		t.Error("the page does not name the precision")
	}
}

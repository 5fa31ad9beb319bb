package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ddiff/coordinator/report/aggregate"
	"ddiff/coordinator/report/reporttest"
	"ddiff/coordinator/report/selection"
	"ddiff/coordinator/report/sweep"
	"ddiff/coordinator/report/table"
	"ddiff/manifest"
)

// TestWarningsAreCounted: the summary and its note count the finished items with warnings, and each code once per item.
func TestWarningsAreCounted(t *testing.T) {
	t.Parallel()
	warned := func(codes ...string) func(*manifest.Result) {
		return func(r *manifest.Result) {
			for _, code := range codes {
				r.Warnings = append(r.Warnings, manifest.Warning{Code: code, Text: "text of " + code})
			}
		}
	}
	s := summaryOf(t, []manifest.Result{
		reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(20, 10, 0.5, 0), warned("residual", "flat")),
		reporttest.Result(t, "hdr", "ddiff", "b", 0, reporttest.Scored(21, 10, 0.5, 0), warned("residual")),
		reporttest.Result(t, "hdr", "ddiff", "c", 0, reporttest.Scored(22, 10, 0.5, 0)),
		reporttest.Result(t, "hdr", "ddiff", "d", 0, reporttest.Ended(manifest.OutcomeFailed, "no file"), warned("flat")),
		reporttest.Result(t, "inpaint", "ddiff", "a", 0, reporttest.Scored(23, 10, 0.5, 0), warned("flat")),
	}, selection.First)
	items, codes := s.Warned()
	if items != 3 || len(codes) != 2 || codes["residual"] != 2 || codes["flat"] != 2 || s.Rows[0].Warned != 2 || s.Rows[1].Warned != 1 {
		t.Errorf("%d items, %v, rows %d and %d", items, codes, s.Rows[0].Warned, s.Rows[1].Warned)
	}
	const note = "3 of 4 finished items have warnings: flat 2, residual 2; see the column warnings of results.csv."
	if notes := table.Of(s, "-").Notes; !slices.Contains(notes, note) {
		t.Errorf("notes %q, want %q", notes, note)
	}
	// A method of which half of the items have warnings is marked; its problem has no best figure and no p value.
	var suspect []manifest.Result
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
	without := summaryOf(t, []manifest.Result{reporttest.Result(t, "hdr", "ddiff", "c", 0, reporttest.Scored(22, 10, 0.5, 0))}, selection.First)
	if notes := strings.Join(table.Of(without, "-").Notes, " "); strings.Contains(notes, "warnings") {
		t.Errorf("without warnings: %q", notes)
	}
}

// TestTunedRowsAreBounded: a note names five rows that were tuned on their own images, and counts the others.
func TestTunedRowsAreBounded(t *testing.T) {
	t.Parallel()
	for rows, more := range map[int]string{5: ".", 5 + 1: "; and of 1 more rows.", 5 + 3: "; and of 3 more rows."} {
		all := []aggregate.Row{{Problem: sweep.Problem{Task: "untuned"}, Approach: sweep.Approach{Method: "ddiff"}, Images: 9}}
		for i := range rows {
			all = append(all, aggregate.Row{Problem: sweep.Problem{Task: fmt.Sprint("task", i)}, Approach: sweep.Approach{Method: "ddiff"}, Preset: "natural", Images: 4, TunedImages: 1 + i%4})
		}
		notes := slices.DeleteFunc(table.Of(aggregate.Summary{Rows: all, Varying: aggregate.Varying{Preset: true}}, "-").Notes, func(note string) bool {
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
		var results []manifest.Result
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
	results := func(yield func(manifest.Result, error) bool) {
		for i := range items {
			if !yield(reporttest.Result(t, "hdr", "ddiff", fmt.Sprintf("image%03d", i), 0, reporttest.Ended(manifest.OutcomeFailed, reason)), nil) {
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

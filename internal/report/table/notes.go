package table

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/entry"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/statistic"
	"ddiff/internal/restore/metric"
)

// maxNamedRows bounds the rows that a note names.
const maxNamedRows = 5

// firstRows joins the first rows; more is the format of the number of the others.
func firstRows(rows []string, more string) string {
	text := strings.Join(rows[:min(len(rows), maxNamedRows)], "; ")
	if n := len(rows) - maxNamedRows; n > 0 {
		text += fmt.Sprintf(more, n)
	}
	return text
}

// notes are the sentences below a table.
func (t *Table) notes(s aggregate.Summary) []Note {
	var out []Note
	add := func(care string, texts ...string) {
		for _, text := range texts {
			out = append(out, Note{Text: text, Care: care})
		}
	}
	if s.Oracle {
		add("The truth chose the runs", "* "+selection.OracleNote+".")
	}
	if slices.ContainsFunc(s.Rows, func(r aggregate.Row) bool { return r.Chosen }) {
		add("", fmt.Sprintf("Runs: %s (%s).", s.Rule.Sentence(), s.Rule))
	}
	out = append(out, Note{Text: "±95%: half-width of the confidence interval of the mean PSNR; each image is one cluster.", Place: Nowhere})
	if s.Missing() > 0 {
		add("Unfinished", fmt.Sprintf("%d of %d planned items have no outcome yet. A rerun of the campaign restores them.", s.Missing(), s.Planned))
	}
	most := mostImages(s.Rows)
	if slices.ContainsFunc(s.Rows, func(r aggregate.Row) bool { return r.Images < most[r.Problem] }) {
		add("Unequal images", strings.TrimSpace(fewer)+" Fewer images than another row of the same problem: compare the paired differences, not the means.")
	}
	if s.Failed+s.Dead > 0 {
		add("Failures", fmt.Sprintf("%d of %d items have no figures: %d failed, %d dead.", s.Failed+s.Dead, s.Items, s.Failed, s.Dead))
	}
	add("Warnings", warningNote(s)...)
	if slices.ContainsFunc(t.Columns, func(c Column) bool { return c.ID == entry.CostNames()[0] }) {
		out = append(out, Note{Place: WithFurther, Text: "Per image: network counts evaluations of the prior's network, backward the backward passes through it, operator " +
			"the calls of A and of its Jacobian."})
	}
	add("Unequal images", t.partialNote(s)...)
	add("", laterNotes(s)...)
	add("Missing scores", s.Unscored...)
	add("Scores that are too high", tuningNotes(s.Rows, s.Varying)...)
	tests, n := 0, 0
	for _, c := range s.Comparisons {
		if c.P != nil {
			tests, n = tests+1, max(n, c.Difference.N)
		}
	}
	if note := statistic.UnreachableNote(tests, n); note != "" && !s.Oracle {
		add("Too few images for a test", note)
	}
	for _, c := range s.Comparisons[:min(maxNotedPairs, len(s.Comparisons))] {
		out = append(out, Note{Text: ComparisonSentence(c, s.Oracle), Place: WithPairs})
	}
	if more := len(s.Comparisons) - maxNotedPairs; more > 0 {
		out = append(out, Note{Text: fmt.Sprintf("%d more comparisons are in %s.", more, KeySummaryJSON), Place: WithPairs})
	}
	return out
}

// laterNotes name the scores that were computed after solving.
func laterNotes(s aggregate.Summary) (out []string) {
	var ids []string
	for _, name := range s.ScoredLater {
		ids = append(ids, s.MetricIDs[name])
	}
	for _, from := range []struct {
		images    string
		unclipped bool
	}{{"the stored pictures", false}, {"the stored unclipped images", true}} {
		some := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return metric.IsUnclipped(id) != from.unclipped })
		if len(some) > 0 {
			out = append(out, "Scores computed after solving, from "+from.images+": "+strings.Join(some, ", ")+".")
		}
	}
	return out
}

// partialNote names the figures that exist for some images of a row only, such as PSNR where some images have no truth.
func (t *Table) partialNote(s aggregate.Summary) []string {
	var rows []string
	for i := range s.Rows {
		r := &s.Rows[i]
		var parts []string
		for _, c := range t.Columns {
			if c.Label || c.half || c.Signed || c.count {
				continue
			}
			if e := c.mean(r); e.N > 0 && e.N < r.Images {
				parts = append(parts, fmt.Sprintf("%s of %d", c.Name, e.N))
			}
		}
		if len(parts) > 0 {
			rows = append(rows, fmt.Sprintf("%s: %s of %d images", s.Varying.RowName(r), strings.Join(parts, ", "), r.Images))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return []string{"Means over fewer images, because the others have no such figure: " + firstRows(rows, "; and %d more rows") + "."}
}

// maxNotedPairs bounds the comparisons below a table.
const maxNotedPairs = 40

// ComparisonSentence has the paired difference with its test.
func ComparisonSentence(c aggregate.Comparison, oracle bool) string {
	where := c.Task
	if c.Problem != "" {
		where += ", " + c.Problem
	}
	if c.Refused != "" {
		return fmt.Sprintf("%s: %s and %s are not compared: %s.", where, c.A, c.B, c.Refused)
	}
	text := fmt.Sprintf("%s: %s − %s = %s dB", where, c.A, c.B, Signed(c.Difference.Mean, 2))
	if oracle {
		text += "*"
	}
	if c.Difference.HalfWidth != nil {
		text += ", 95% interval " + Interval(c.Difference, 2)
	}
	text += fmt.Sprintf(" (paired, n = %d", c.Difference.N)
	if c.Suspect {
		text += ", no test: warnings"
	} else if c.PHolm != nil && !oracle {
		text += fmt.Sprintf(", Wilcoxon p = %s after Holm", strconv.FormatFloat(*c.PHolm, 'g', 2, 64))
	}
	if c.LeftOut > 0 {
		text += fmt.Sprintf(", %d left out", c.LeftOut)
	}
	return text + ")."
}

// tuningNotes name the rows whose settings were chosen with their own images.
func tuningNotes(rows []aggregate.Row, varying aggregate.Varying) []string {
	var out []string
	for _, kind := range []struct {
		images func(r *aggregate.Row) int
		text   string
	}{
		{func(r *aggregate.Row) int { return r.TunedImages }, "ddiff tune chose settings with images of the same row"},
		{func(r *aggregate.Row) int { return r.PresetImages }, "Values of a preset were chosen with images of the same row"},
	} {
		var named []string
		for i := range rows {
			r := &rows[i]
			if n := kind.images(r); n > 0 {
				named = append(named, fmt.Sprintf("%d of %d images of %s", n, r.Images, varying.RowName(r)))
			}
		}
		if len(named) > 0 {
			out = append(out, kind.text+", so that its figures are too good: "+firstRows(named, "; and of %d more rows")+".")
		}
	}
	return out
}

// warningNote states how many items have warnings.
func warningNote(s aggregate.Summary) []string {
	items, codes := s.Warned()
	if items == 0 {
		return nil
	}
	out := []string{fmt.Sprintf("%d of %d finished items have warnings: %s; see the column warnings of results.csv.", items, s.Done, aggregate.WarningCounts(codes))}
	if slices.ContainsFunc(s.Rows, func(r aggregate.Row) bool { return r.Suspect() }) {
		out = append(out, strings.TrimSpace(Suspect)+" At least half of the items of the row have warnings: its figures may be wrong, so that no figure of its problem is marked as the best, and no p value is given.")
	}
	return out
}

package comparison

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"ddiff/internal/report/result"
	"ddiff/internal/report/sheet"
	"ddiff/internal/report/statistic"
	"ddiff/internal/report/sweep"
	"ddiff/internal/report/table"
	"ddiff/internal/restore/metric"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// The files of a comparison.
const (
	KeyComparison  = "comparison.json"
	KeyDifferences = "differences.png"
)

// WriteText writes one line per problem, one per condition in which the sides differ, and the largest differences by measurement, at most the given number.
func (v *Versus) WriteText(w io.Writer, largest int) error {
	name, unit, decimals := v.heading()
	t := table.Table{Columns: table.Names([]string{"problem"}, "images", name+" A", name+" B", "A - B", "95% interval", "p", "p (Holm)")}
	note := func(format string, args ...any) {
		t.Notes = append(t.Notes, table.Note{Text: fmt.Sprintf(format, args...)})
	}
	tests, images, suspect := 0, 0, false
	for _, r := range v.Rows {
		problem, p, holm := r.Describe(), probability(r.P), probability(r.PHolm)
		if r.P != nil {
			tests, images = tests+1, max(images, r.Difference.N)
		}
		if r.Suspect {
			suspect, problem, p, holm = true, problem+table.Suspect, "-", "-"
		}
		t.Lines = append(t.Lines, table.Cells([]string{problem, strconv.Itoa(r.Difference.N), table.Mean(r.MeanA, decimals, "-"), table.Mean(r.MeanB, decimals, "-"),
			table.SignedMean(r.Difference, decimals, "-"), table.Interval(r.Difference, decimals), p, holm}))
	}
	note("Each image is one cluster; p of Wilcoxon's signed-rank test over images, adjusted for all problems by Holm's method.")
	if suspect {
		note("%s At least half of the items of a side have warnings: the figures may be wrong, and no p value is given.", strings.TrimSpace(table.Suspect))
	}
	if text := statistic.UnreachableNote(tests, images); text != "" {
		note("%s", text)
	}
	for _, u := range v.Unequal {
		note("note: %s", u)
	}
	for _, r := range v.Rows {
		if r.LeftOut > 0 {
			note("%s: %d measurements have no %s from both sides.", r.Describe(), r.LeftOut, name)
		}
	}
	for i, only := range [][]sweep.Problem{v.OnlyA, v.OnlyB} {
		for _, p := range only {
			note("%s: only in %c.", p.Describe(), 'A'+i)
		}
	}
	if n := min(largest, len(v.Images)); n > 0 {
		note("")
		note("largest differences:")
		for _, d := range v.Images[:n] {
			note("%s%s  %s  %s (A %s, B %s)", table.Signed(d.Difference(), decimals), unit, d.Image, d.Describe(), table.Decimal(d.ValueA, decimals), table.Decimal(d.ValueB, decimals))
		}
	}
	return t.Write(w, table.FormatText, "comparison")
}

// heading returns the heading of the metric's columns, its unit, and the number of decimals.
func (v *Versus) heading() (name, unit string, decimals int) {
	m := metric.Describe(v.name())
	if m.Unit == "" {
		return m.Title, "", max(4, m.Decimals) // differences on a scale of 1 are small
	}
	return m.Title, " " + m.Unit, m.Decimals
}

func probability(p *float64) string {
	if p == nil {
		return "-"
	}
	return strconv.FormatFloat(*p, 'g', 3, 64)
}

// Write stores comparison.json, and differences.png with the pictures of the largest differences: measurement, A, B and
// truth. A and b are the stores of the items. The error wraps [result.ErrIncomplete] if a picture cannot be read.
func (v *Versus) Write(ctx context.Context, to, a, b result.Files, tasks operator.Set, largest int) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode comparison: %w", err)
	}
	if err := result.Put(ctx, to, KeyComparison, append(data, '\n')); err != nil {
		return err
	}
	shown := v.Images[:min(largest, sheet.MaxRows, len(v.Images))]
	s := sheet.Sheet{Title: "A and B: largest differences", Subtitle: fmt.Sprintf("%d of %d measurements", len(shown), len(v.Images))}
	_, unit, decimals := v.heading()
	for _, d := range shown {
		s.Rows = append(s.Rows, sheet.Row{
			Name: d.Image,
			Details: []string{
				tasks.Label(d.Task), "A − B " + table.Signed(d.Difference(), decimals) + unit,
				"A " + table.Decimal(d.ValueA, decimals) + "  B " + table.Decimal(d.ValueB, decimals),
			},
			Items: [][]sheet.Picture{{
				sheet.Of(a, d.a, item.FileTruth, "truth"), sheet.Of(a, d.a, item.FileMeasurement, "measurement"),
				sheet.Of(a, d.a, item.FileRestored, "A"), sheet.Of(b, d.b, item.FileRestored, "B"),
			}},
		})
	}
	_, lost, err := s.Write(ctx, to, KeyDifferences)
	return errors.Join(err, result.Incomplete(lost))
}

package published

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/statistic"
	"ddiff/internal/report/sweep"
	"ddiff/internal/report/table"
)

// Table renders the comparison: the columns are the task, the method, the varying properties, the number of images, and for each figure
// ours, theirs and the difference. Figures that no row of the results has are theirs alone.
func (p *Figures) Table(s aggregate.Summary, missing string) table.Table {
	pairs, further := p.pairs(s)
	variants := s.Variants()
	varies := slices.ContainsFunc(pairs, func(pair publishedPair) bool { return pair.ours != nil && variants[pair.ours.Cell] != "" })
	t := table.Table{
		Title: "Published figures of " + p.Name, Verdict: sentence(p.verdict(pairs, s)),
	}
	labels, heads := []string{"task", "method"}, []string{"images"}
	if varies {
		labels = append(labels, "cell")
	}
	figures := p.figures()
	for k, f := range figures {
		shown := slices.ContainsFunc(pairs, func(p publishedPair) bool { return p.ours != nil && f.of(p.ours).N > 0 })
		if figures[k].shown = shown; shown {
			heads = append(heads, f.heading)
		}
		heads = append(heads, f.heading+" theirs")
		if shown {
			heads = append(heads, "difference")
		} else {
			t.Notes = append(t.Notes, table.Note{Text: f.heading + ": these results have none, or those of several networks."})
		}
	}
	t.Columns = table.Names(labels, heads...)
	for i, pair := range pairs {
		if i > 0 && pairs[i-1].task != pair.task {
			t.Rules = append(t.Rules, i)
		}
		t.Lines = append(t.Lines, table.Cells(pair.line(s, variants, varies, figures, missing)))
		if pair.ours != nil && pair.theirs["remark"] != "" {
			if note := (table.Note{Text: pair.task + ": " + pair.theirs["remark"] + "."}); !slices.Contains(t.Notes, note) {
				t.Notes = append(t.Notes, note)
			}
		}
	}
	if further > 0 {
		t.Notes = append(t.Notes, table.Note{Text: fmt.Sprintf("%d further tasks of the publication are not in these results.", further)})
	}
	if s.Oracle {
		t.Notes = append(t.Notes, table.Note{Text: "* " + selection.OracleNote + "."})
	}
	t.Notes = append(t.Notes, table.Note{Text: "± is half the 95 % interval of the mean. Source: " + p.Source})
	return t
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }

// line renders one pair.
func (pair publishedPair) line(s aggregate.Summary, variants map[sweep.Cell]string, varies bool, figures []publishedFigure, missing string) []string {
	method, cell, n, star := pair.theirs["method"], missing, missing, ""
	if pair.ours != nil {
		method, n = pair.ours.Method, strconv.Itoa(pair.ours.Images)
		cell = cmp.Or(variants[pair.ours.Cell], missing)
		if pair.ours.Marked(s.Oracle) {
			star = "*"
		}
	}
	line := []string{pair.task, method}
	if varies {
		line = append(line, cell)
	}
	line = append(line, n)
	for _, f := range figures {
		ours, theirs, difference := missing, cmp.Or(pair.theirs[f.name], missing), missing
		e, d := f.compared(pair.ours, pair.theirs)
		if e.N > 0 {
			ours = table.Decimal(e.Mean, f.decimals)
			if e.HalfWidth != nil {
				ours += " ±" + table.Half(e, f.decimals, "")
			}
			ours += star
		}
		if half := pair.theirs[f.name+"_half"]; theirs != missing && half != "" {
			theirs += " ±" + half
		}
		if statistic.Defined(d) {
			difference = table.Signed(d, f.decimals) + star
		}
		if f.shown {
			line = append(line, ours, theirs, difference)
		} else {
			line = append(line, theirs)
		}
	}
	return line
}

// Write writes the comparison of a summary with published figures: ours, theirs and the difference, and before it
// whether they are comparable. Rows of the publication whose method the summary lacks are theirs alone.
//
// It returns an error that wraps [table.ErrUnknownFormat], or the error of w.
func Write(w io.Writer, s aggregate.Summary, p *Figures, format table.Format) error {
	return p.Table(s, format.Missing()).Write(w, format, "published figures")
}

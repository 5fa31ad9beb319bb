package table

import (
	"cmp"
	"io"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/statistic"
	"ddiff/internal/report/sweep"
)

// Suspect marks a row of which at least half of the items have warnings.
const Suspect = " †"

// fewer marks a row with fewer images than another row of its problem.
const fewer = " ‡"

// Of returns one line per problem and approach; missing stands for an undefined figure. The first note states the units and what
// all rows share.
func Of(s aggregate.Summary, missing string) Table { return tableOf(s, false, missing) }

// tableOf has all metrics if they are wanted.
func tableOf(s aggregate.Summary, all bool, missing string) Table {
	t := Table{Columns: meanColumns(&s, all)}
	t.Notes = append(t.sharedNotes(s), t.notes(s)...)
	most := mostImages(s.Rows)
	for i := range s.Rows {
		r := &s.Rows[i]
		var line []Cell
		for k := range t.Columns {
			line = append(line, t.Columns[k].of(r, s.Oracle, r.Images < most[r.Problem], missing))
		}
		t.Lines = append(t.Lines, line)
	}
	t.markBest(s)
	return t
}

// of is the cell of a row. fewer: another row of the problem has more images.
func (c *Column) of(r *aggregate.Row, oracle, less bool, missing string) Cell {
	if c.Label {
		cell := Cell{Text: cmp.Or(c.text(r), missing)}
		if c.ID == "method" && r.Suspect() {
			cell.Text += Suspect
		}
		if c.ID == "method" && less {
			cell.Text += fewer
		}
		return cell
	}
	cell := Cell{Estimate: c.mean(r)}
	cell.Text = c.cell(cell.Estimate, missing)
	if cell.Mark = c.chosen && r.Marked(oracle) && cell.Text != missing; cell.Mark {
		cell.Text += "*"
	}
	return cell
}

// mostImages is the largest number of images of a row, by problem.
func mostImages(rows []aggregate.Row) map[sweep.Problem]int {
	most := make(map[sweep.Problem]int)
	for i := range rows {
		most[rows[i].Problem] = max(most[rows[i].Problem], rows[i].Images)
	}
	return most
}

// markBest marks the figures in bold print: of each problem with two or more comparable approaches the highest PSNR and SSIM, ties of the
// printed figures included. A problem with a suspect row has none, nor has a figure that the rows have for different numbers of images.
func (t *Table) markBest(s aggregate.Summary) {
	if s.Oracle {
		return
	}
	refused := make(map[sweep.Problem]bool)
	for i := range s.Rows {
		r := &s.Rows[i]
		refused[r.Problem] = refused[r.Problem] || r.Suspect()
	}
	for _, c := range s.Comparisons {
		refused[c.Of] = refused[c.Of] || c.Refused != "" || c.LeftOut > 0
	}
	lines := t.Lines
	for rows := range sweep.Blocks(s.Rows, func(r aggregate.Row) sweep.Problem { return r.Problem }) {
		if len(rows) > 1 && !refused[rows[0].Problem] {
			for k := range t.Columns {
				t.Columns[k].markBest(lines[:len(rows)], k)
			}
		}
		lines = lines[len(rows):]
	}
}

// markBest marks the best cells of a column in the lines of one problem.
func (c *Column) markBest(lines [][]Cell, k int) {
	if c.merit == nil {
		return
	}
	best, first := statistic.Estimate{}, lines[0][k]
	for _, line := range lines {
		e := line[k].Estimate
		if e.N != first.N || e.Measurements != first.Measurements {
			return
		}
		if e.N > 0 && (best.N == 0 || c.merit(e.Mean) > c.merit(best.Mean)) {
			best = e
		}
	}
	for _, line := range lines {
		line[k].Best = best.N > 0 && c.cell(line[k].Estimate, "") == c.cell(best, "")
	}
}

// Write writes one line per problem and approach, with a column for each varying property. Notes below the table state
// how runs were combined, how many items have no figures and how the approaches differ. Markdown and LaTeX print the best
// approach to a problem in bold, unless the ground truth selected the runs or the approaches restored different measurements.
//
// It returns an error that wraps [ErrUnknownFormat], or the error of w.
func Write(w io.Writer, s aggregate.Summary, format Format) error {
	return Layout{}.Write(w, s, format)
}

// typeset adapts a summary's table to LaTeX: the tasks' names for people, rules between compared tasks, unless each line repeats its task.
func (t *Table) typeset(s aggregate.Summary, repeats bool) {
	for i := range s.Rows {
		t.Lines[i][0].Text = s.Rows[i].Label
		if repeats {
			continue
		}
		if i > 0 && s.Rows[i-1].Task == s.Rows[i].Task {
			t.Lines[i][0].Text = ""
		} else if i > 0 && len(s.Comparisons) > 0 {
			t.Rules = append(t.Rules, i)
		}
	}
	if s.Oracle {
		t.footnote = selection.OracleNote
	}
}

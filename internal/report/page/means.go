package page

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/statistic"
	"ddiff/internal/report/sweep"
	"ddiff/internal/report/table"
	"ddiff/internal/restore/metric"
)

// means is a table of means: its columns with their lines. A cell has only as many digits as its interval allows.
type means struct {
	Columns []table.Column
	Lines   []meansLine
	// Scale has the marks over the ranges of PSNR, nil without.
	Scale []tick
}

type meansLine struct {
	Suspect bool
	Cells   []meansCell
	// Range is the PSNR from the degraded image to the restored one.
	Range *strip
}

// meansCell is a cell. Value is the exact number for sorting, empty for an undefined one, and the row's number for a task. Small is a second line.
type meansCell struct {
	table.Cell
	number
	Value, Small string
	Task, Same   bool
}

// number is a figure whose point is above those of its column: Whole before it, Fraction from it on, Half its interval. Widths are in characters.
type number struct {
	Whole, Fraction, Half string
	FractionWidth, Width  float64
}

// numberOf has at most so many decimals.
func numberOf(e statistic.Estimate, decimals int, signed bool) number {
	mean, half := table.Measured(e, decimals, signed)
	mean = strings.Replace(mean, "-", "−", 1)
	n := number{Whole: mean}
	if at := strings.IndexByte(mean, '.'); at >= 0 {
		n.Whole, n.Fraction = mean[:at], mean[at:]
	}
	if half != "" {
		n.Half = "± " + half
	}
	return n
}

// align gives numbers that are below each other their widths.
func align(all []*number) {
	fraction, half := 0, 0
	for _, n := range all {
		fraction, half = max(fraction, len(n.Fraction)), max(half, utf8.RuneCountInString(n.Half))
	}
	for _, n := range all {
		n.FractionWidth = max(0, float64(fraction)-0.5) // a point is narrow
		if half > 0 {
			n.Width = float64(half) + 0.2
		}
	}
}

// newMeans divides the columns of a table into those of the first sight and the further ones, without those that no row has a figure of. Without a
// truth the residual is all there is to judge by.
func newMeans(s aggregate.Summary, all table.Table) (first, further means) {
	scored := slices.ContainsFunc(s.Rows, func(r aggregate.Row) bool { return r.PSNR().N > 0 })
	for k, c := range all.Columns {
		empty := !c.Label
		for _, line := range all.Lines {
			empty = empty && line[k].N == 0
		}
		if empty && len(all.Lines) > 0 || c.Interval() {
			continue
		}
		later := c.Further && (scored || c.ID != metric.NameResidual)
		if c.Label || !later {
			first.add(s, all, k)
		}
		if c.Label || later {
			further.add(s, all, k)
		}
	}
	return first, further
}

// Names are those of the figures.
func (m means) Names() string {
	var names []string
	for _, c := range m.Columns {
		if !c.Label {
			names = append(names, c.Name)
		}
	}
	return strings.Join(names, ", ")
}

// add adds column k of a table.
func (m *means) add(s aggregate.Summary, all table.Table, k int) {
	c := all.Columns[k]
	c.Same = (c.Label || c.Decimals == 0) && c.ID != "task" && !slices.ContainsFunc(all.Lines, func(line []table.Cell) bool { return line[k].Text != all.Lines[0][k].Text })
	m.Columns = append(m.Columns, c)
	var numbers []*number
	for i, line := range all.Lines {
		if i == len(m.Lines) {
			m.Lines = append(m.Lines, meansLine{Suspect: s.Rows[i].Suspect()})
		}
		cell := meansCell{Cell: line[k], Same: c.Same}
		switch {
		case c.ID == "task":
			cell.Task, cell.Text, cell.Value, cell.Small = true, s.Rows[i].Label, sweep.Exact(float64(i)), s.Rows[i].SharedParams()
		case c.Label:
			cell.Value = cell.Text
		case cell.N > 0:
			e, decimals := cell.Estimate, c.Decimals
			if c.Rough {
				e.HalfWidth = nil
				decimals = min(decimals, max(0, 1-int(math.Floor(math.Log10(max(1e-9, e.Mean))))))
			}
			cell.number, cell.Value = numberOf(e, decimals, c.Signed), sweep.Exact(cell.Mean)
			if c.Alone {
				cell.Half = ""
			}
			if cell.Mark {
				cell.Fraction += "*"
			}
		}
		m.Lines[i].Cells = append(m.Lines[i].Cells, cell)
	}
	for i := range m.Lines {
		numbers = append(numbers, &m.Lines[i].Cells[len(m.Columns)-1].number)
	}
	align(numbers)
}

// setting has what produced a row of the table, without what is common.
type setting struct{ Task, Params, Method, Settings string }

// tableSettings lists what produced the rows of the table, and the settings that all rows of a method share.
func tableSettings(s aggregate.Summary) (all, shared []setting) {
	lists := make(map[string][]string)
	for i := range s.Rows {
		if r := &s.Rows[i]; r.Resolved() {
			lists[r.Method] = append(lists[r.Method], r.Settings)
		}
	}
	at := make(map[string]int)
	seen := make(map[setting]bool)
	for i := range s.Rows {
		r := &s.Rows[i]
		if !r.Resolved() {
			continue
		}
		varying, _ := sweep.VaryingAssignments(lists[r.Method])
		own := varying[at[r.Method]]
		if at[r.Method]++; at[r.Method] == 1 {
			shared = append(shared, setting{Method: r.Method, Settings: strings.Join(sweep.Without(r.Settings, own), " ")})
		}
		line := setting{r.Label, strings.ReplaceAll(r.Params, ";", " "), r.Method, own}
		if !seen[line] {
			seen[line] = true
			all = append(all, line)
		}
	}
	return all, shared
}

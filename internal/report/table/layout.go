package table

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"ddiff/internal/failure"
	"ddiff/internal/report/aggregate"
)

// ErrColumn: a table has no such column.
var ErrColumn = failure.New(failure.Input, "unknown column")

// Layout chooses what a table shows.
type Layout struct {
	// Columns are the names of the numbers to show, in this order, in any case, or their IDs, of all metrics. Empty: those of [Of], or with Methods PSNR and SSIM.
	Columns []string
	// Methods gives each method a line and each problem columns, as papers have it. Otherwise each problem and method is a line.
	Methods bool
}

// Write is [Write] with a layout. The error wraps [ErrColumn] if the table has no such column.
func (l Layout) Write(w io.Writer, s aggregate.Summary, format Format) error {
	t := tableOf(s, len(l.Columns) > 0, format.Missing())
	picked, err := l.pick(t)
	if err != nil {
		return err
	}
	if format == FormatLaTeX {
		t.typeset(s, l.Methods)
	}
	if l.Methods {
		t.turn(picked, format.Missing())
	} else if len(l.Columns) > 0 {
		t.keep(picked)
	}
	return t.Write(w, format, "table")
}

// pick returns the indices of the chosen columns.
func (l Layout) pick(t Table) (picked []int, err error) {
	names, labels := l.Columns, t.labels()
	if len(names) == 0 && l.Methods {
		names = []string{"PSNR", "SSIM"}
	}
	for _, name := range names {
		k := slices.IndexFunc(t.Columns[labels:], func(c Column) bool { return strings.EqualFold(c.Name, name) || c.ID == name })
		if k < 0 {
			var known []string
			for _, c := range t.Columns[labels:] {
				known = append(known, c.Name)
			}
			return nil, fmt.Errorf("%w %q: want some of %s", ErrColumn, name, strings.Join(known, ", "))
		}
		picked = append(picked, labels+k)
	}
	return picked, nil
}

// of returns some of the elements.
func of[T any](all []T, picked []int) (out []T) {
	for _, k := range picked {
		out = append(out, all[k])
	}
	return out
}

// keep keeps the labels and the picked columns.
func (t *Table) keep(picked []int) {
	n := t.labels()
	t.Columns = append(t.Columns[:n:n], of(t.Columns, picked)...)
	for i, line := range t.Lines {
		t.Lines[i] = append(line[:n:n], of(line, picked)...)
	}
}

// turn gives each approach a line, and each problem the picked columns.
func (t *Table) turn(picked []int, missing string) {
	var problem, approach []int
	for k := range t.labels() {
		if slices.Contains([]string{"task", "params", "sigma", "photons", "size"}, t.Columns[k].ID) {
			problem = append(problem, k)
		} else {
			approach = append(approach, k)
		}
	}
	key := func(line []Cell, of []int) string {
		var texts []string
		for _, k := range of {
			c := t.Columns[k]
			switch text, _ := unmarked(line[k].Text); {
			case text == missing:
			case c.ID == "sigma" || c.ID == "photons": // numbers
				texts = append(texts, c.Name+" "+text)
			default:
				texts = append(texts, text)
			}
		}
		return strings.Join(texts, " ")
	}
	var problems, approaches []string
	cells := map[[2]string][]Cell{}
	firsts := map[string][]Cell{}
	for _, line := range t.Lines {
		p, a := key(line, problem), key(line, approach)
		if !slices.Contains(problems, p) {
			problems = append(problems, p)
		}
		if !slices.Contains(approaches, a) {
			approaches, firsts[a] = append(approaches, a), line
		}
		figures := of(line, picked)
		for _, k := range approach { // the marks are those of one problem
			if _, mark := unmarked(line[k].Text); mark != "" {
				figures[0].Text += mark
			}
		}
		cells[[2]string{p, a}] = figures
	}
	head := of(t.Columns, approach)
	for _, p := range problems {
		for _, k := range picked {
			c := t.Columns[k]
			if c.TeX != "" {
				c.TeX = FormatLaTeX.Escape(p) + " " + c.TeX
			}
			c.Name = p + " " + c.Name
			head = append(head, c)
		}
	}
	var lines [][]Cell
	for _, a := range approaches {
		var line []Cell
		for _, k := range approach {
			text, _ := unmarked(firsts[a][k].Text)
			line = append(line, Cell{Text: text})
		}
		for _, p := range problems {
			figures, ok := cells[[2]string{p, a}]
			for i := range picked {
				if ok {
					line = append(line, figures[i])
				} else {
					line = append(line, Cell{Text: missing})
				}
			}
		}
		lines = append(lines, line)
	}
	t.Columns, t.Lines, t.Rules = head, lines, nil
}

// unmarked divides a label into its text and its marks.
func unmarked(text string) (plain, marks string) {
	plain = strings.TrimSuffix(strings.TrimSuffix(text, fewer), Suspect)
	return plain, text[len(plain):]
}

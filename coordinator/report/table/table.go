// Package table writes tables: a summary as text, Markdown and LaTeX ([Write]), and all items as CSV and Parquet. A
// [Table] is a table of texts, which the page renders, too.
//
// A column of results.csv and of Parquet is one line in itemColumns (items.go), a column of the summary one in figureColumns (summary.go), a
// sentence below it one function in notes.go. A value that results have and entries lack is first a field of package entry.
// docs/results.md lists the columns of results.csv; new ones come last, before the further metrics. result/filter.go reads those of --where.
package table

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"ddiff/coordinator/report/aggregate"
)

// ErrUnknownFormat: the table format is none of the three.
var ErrUnknownFormat = errors.New("unknown table format")

// The keys of a report's tables.
const (
	KeyCSV             = "results.csv"
	KeySummaryJSON     = aggregate.KeyJSON
	KeySummaryMarkdown = "summary.md"
)

// Format is a text format of a table.
type Format string

// The formats of a table.
const (
	// FormatText is aligned plain text for a terminal.
	FormatText Format = "text"
	// FormatMarkdown is a GitHub-flavoured pipe table.
	FormatMarkdown Format = "markdown"
	// FormatLaTeX is a tabular environment; it needs the booktabs package.
	FormatLaTeX Format = "latex"
)

// Missing stands for an undefined figure.
func (f Format) Missing() string {
	return map[Format]string{FormatText: "-", FormatMarkdown: "–", FormatLaTeX: "--"}[f]
}

// Table is a table of texts: the first Labels columns have text, the others numbers.
type Table struct {
	// Title and Verdict are before the table, if there are any.
	Title, Verdict string
	Labels         int
	Head           []string
	Lines          [][]Cell
	Notes          []string
	// Rules are the lines with a rule before them in LaTeX.
	Rules []int

	footnote string // of LaTeX
}

// Cell is a cell. Best prints it bold. Value is the exact number for sorting, empty for an undefined one.
type Cell struct {
	Text, Value string
	Best        bool
}

// Cells are cells with texts only.
func Cells(texts []string) []Cell {
	out := make([]Cell, len(texts))
	for i, text := range texts {
		out[i].Text = text
	}
	return out
}

// Write writes the table in a format. What names the table in errors, which wrap [ErrUnknownFormat] or are of w.
func (t Table) Write(w io.Writer, format Format, what string) error {
	var text string
	var err error
	switch format {
	case FormatText:
		err = t.writeText(w)
	case FormatMarkdown:
		text = t.markdown()
	case FormatLaTeX:
		text = t.latex()
	default:
		return fmt.Errorf("write %s as %q: %w; use %s, %s or %s", what, format, ErrUnknownFormat, FormatText, FormatMarkdown, FormatLaTeX)
	}
	if text != "" {
		_, err = io.WriteString(w, text)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}

// writeText aligns the labels to the left and the numbers to the right.
func (t Table) writeText(w io.Writer) error {
	out := NewWriter(w)
	if t.Title != "" {
		fmt.Fprintln(out, FormatText.Escape(t.Title)+"\n"+FormatText.Escape(t.Verdict))
	}
	var lines [][]string
	for _, line := range append([][]Cell{Cells(t.Head)}, t.Lines...) {
		var cells []string
		for _, c := range line {
			cells = append(cells, FormatText.Escape(c.Text))
		}
		lines = append(lines, cells)
	}
	for k := t.Labels; k < len(t.Head); k++ {
		width := 0
		for _, cells := range lines {
			width = max(width, utf8.RuneCountInString(cells[k]))
		}
		for _, cells := range lines {
			cells[k] = fmt.Sprintf("%*s", width, cells[k])
		}
	}
	for _, cells := range lines {
		fmt.Fprintln(out, strings.Join(cells, "\t"))
	}
	for _, note := range t.Notes {
		fmt.Fprintln(out, FormatText.Escape(note))
	}
	return out.Flush()
}

func (t Table) markdown() string {
	var b strings.Builder
	if t.Title != "" {
		fmt.Fprintf(&b, "**%s**\n\n%s\n\n", FormatMarkdown.Escape(t.Title), FormatMarkdown.Escape(t.Verdict))
	}
	for _, h := range t.Head {
		b.WriteString("| " + FormatMarkdown.Escape(h) + " ")
	}
	b.WriteString("|\n|" + strings.Repeat(" :-- |", t.Labels) + strings.Repeat(" --: |", len(t.Head)-t.Labels) + "\n")
	for _, line := range t.Lines {
		for _, c := range line {
			text := FormatMarkdown.Escape(c.Text)
			if c.Best {
				text = "**" + text + "**"
			}
			b.WriteString("| " + text + " ")
		}
		b.WriteString("|\n")
	}
	for _, note := range t.Notes {
		b.WriteString("\n" + FormatMarkdown.Escape(note) + "\n")
	}
	return b.String()
}

func (t Table) latex() string {
	var b strings.Builder
	if t.Title != "" {
		b.WriteString("% " + FormatText.Escape(t.Title) + "\n% " + FormatText.Escape(t.Verdict) + "\n")
	}
	b.WriteString("% needs \\usepackage{booktabs}\n")
	b.WriteString("\\begin{tabular}{" + strings.Repeat("l", t.Labels) + strings.Repeat("r", len(t.Head)-t.Labels) + "}\n\\toprule\n")
	head := make([]string, len(t.Head))
	for i, h := range t.Head {
		if head[i] = FormatLaTeX.Escape(h); h == "n" {
			head[i] = "$n$"
		}
	}
	b.WriteString(strings.Join(head, " & ") + " \\\\\n\\midrule\n")
	for i, line := range t.Lines {
		if slices.Contains(t.Rules, i) {
			b.WriteString("\\midrule\n")
		}
		var cells []string
		for k, c := range line {
			text := FormatLaTeX.Escape(c.Text)
			if k >= t.Labels {
				text = latexFigure(c.Text)
			}
			if c.Best {
				text = "\\textbf{" + text + "}"
			}
			cells = append(cells, text)
		}
		b.WriteString(strings.Join(cells, " & ") + " \\\\\n")
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n\n")
	for _, note := range t.Notes {
		b.WriteString("% " + FormatText.Escape(note) + "\n")
	}
	if strings.ContainsFunc(b.String()[:strings.Index(b.String(), "\\bottomrule")], func(r rune) bool { return r > 'ſ' }) {
		b.WriteString("% has characters that pdfLaTeX may lack: LuaLaTeX and XeLaTeX have all of their font\n")
	}
	if t.footnote != "" {
		b.WriteString("\n{\\footnotesize $^{*}$ " + FormatLaTeX.Escape(t.footnote) + ".}\n")
	}
	return b.String()
}

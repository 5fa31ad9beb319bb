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
	"ddiff/coordinator/report/sweep"
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
		fmt.Fprintln(out, sweep.Printable(t.Title)+"\n"+sweep.Printable(t.Verdict))
	}
	lines := [][]string{slices.Clone(t.Head)}
	for _, line := range t.Lines {
		var cells []string
		for _, c := range line {
			cells = append(cells, sweep.Printable(c.Text))
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
		fmt.Fprintln(out, sweep.Printable(note))
	}
	return out.Flush()
}

func (t Table) markdown() string {
	var b strings.Builder
	if t.Title != "" {
		fmt.Fprintf(&b, "**%s**\n\n%s\n\n", EscapeMarkdown(t.Title), EscapeMarkdown(t.Verdict))
	}
	for _, h := range t.Head {
		b.WriteString("| " + EscapeMarkdown(h) + " ")
	}
	b.WriteString("|\n|" + strings.Repeat(" :-- |", t.Labels) + strings.Repeat(" --: |", len(t.Head)-t.Labels) + "\n")
	for _, line := range t.Lines {
		for _, c := range line {
			text := EscapeMarkdown(c.Text)
			if c.Best {
				text = "**" + text + "**"
			}
			b.WriteString("| " + text + " ")
		}
		b.WriteString("|\n")
	}
	for _, note := range t.Notes {
		b.WriteString("\n" + EscapeMarkdown(note) + "\n")
	}
	return b.String()
}

func (t Table) latex() string {
	var b strings.Builder
	if t.Title != "" {
		b.WriteString("% " + sweep.Printable(t.Title) + "\n% " + sweep.Printable(t.Verdict) + "\n")
	}
	b.WriteString("% needs \\usepackage{booktabs}\n")
	b.WriteString("\\begin{tabular}{" + strings.Repeat("l", t.Labels) + strings.Repeat("r", len(t.Head)-t.Labels) + "}\n\\toprule\n")
	b.WriteString(strings.Join(t.Head, " & ") + " \\\\\n\\midrule\n")
	for i, line := range t.Lines {
		if slices.Contains(t.Rules, i) {
			b.WriteString("\\midrule\n")
		}
		var cells []string
		for k, c := range line {
			text := escapeLaTeX(c.Text)
			if k >= t.Labels {
				text = latexNumber(c.Text)
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
		b.WriteString("% " + sweep.Printable(note) + "\n")
	}
	if t.footnote != "" {
		b.WriteString("\n{\\footnotesize $^{*}$ " + escapeLaTeX(t.footnote) + ".}\n")
	}
	return b.String()
}

// latexNumber typesets signs and intervals in math mode and the oracle's asterisk as a superscript.
func latexNumber(s string) string {
	s, marks := unmarked(s)
	if marks != "" {
		return latexNumber(s) + escapeLaTeX(marks)
	}
	number, oracle := strings.CutSuffix(s, "*")
	mean, half, interval := strings.Cut(number, " ±")
	if interval {
		number = mean + " \\pm " + half
	}
	switch {
	case oracle:
		return "$" + number + "^{*}$"
	case interval, number != "--" && strings.ContainsAny(number, "+-"):
		return "$" + number + "$"
	}
	return number
}

// escapeLaTeX escapes a name so that LaTeX prints it literally.
func escapeLaTeX(s string) string {
	return strings.NewReplacer(
		`\`, `\textbackslash{}`, `~`, `\textasciitilde{}`, `^`, `\textasciicircum{}`,
		`&`, `\&`, `%`, `\%`, `$`, `\$`, `#`, `\#`, `_`, `\_`, `{`, `\{`, `}`, `\}`,
		`†`, `\textdagger{}`, `‡`, `\textdaggerdbl{}`, `<`, `\textless{}`, `>`, `\textgreater{}`,
	).Replace(sweep.Printable(s))
}

// EscapeMarkdown prevents names from ending a cell, opening a link or becoming HTML.
func EscapeMarkdown(s string) string {
	var b strings.Builder
	for _, r := range sweep.Printable(s) {
		if strings.ContainsRune("\\`*_|<>[]&", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Package table writes tables: a summary as text, Markdown and LaTeX ([Write]), and all items as CSV and Parquet. A
// [Table] is a table of texts, which the page renders, too.
//
// A column of results.csv, of Parquet, of a table of means and of the page is one line in columns (columns.go), a sentence below a table one function in
// notes.go. A value that results have and entries lack is first a field of package entry.
// docs/results.md lists the columns of results.csv. result/filter.go reads those of --where.
package table

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"ddiff/internal/failure"
	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/statistic"
)

// ErrUnknownFormat: the table format is none of the three.
var ErrUnknownFormat = failure.New(failure.Input, "unknown table format")

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

// Table is a table of texts. The columns with labels come first.
type Table struct {
	// Title and Verdict are before the table, if there are any.
	Title, Verdict string
	Columns        []Column
	Lines          [][]Cell
	Notes          []Note
	// Rules are the lines with a rule before them in LaTeX.
	Rules []int

	footnote string // of LaTeX
}

// Note is a sentence below a table. Care is its heading if it says how figures mislead.
type Note struct {
	Text, Care string
	Place      Place
}

// Place is where a page has a note.
type Place int

// The places: below the table, below the columns that are shown on demand, with the paired differences, or nowhere, because headings and captions say it.
const (
	Below Place = iota
	WithFurther
	WithPairs
	Nowhere
)

// Texts are the texts of notes.
func Texts(notes []Note) []string {
	var out []string
	for _, n := range notes {
		out = append(out, n.Text)
	}
	return out
}

// Cell is a cell. Best prints it bold, Mark adds the asterisk of an oracle. A figure has its estimate.
type Cell struct {
	statistic.Estimate
	Text       string
	Best, Mark bool
}

// Names are columns of text and of numbers with these names.
func Names(labels []string, figures ...string) []Column {
	var out []Column
	for _, name := range labels {
		out = append(out, Column{Name: name, Label: true})
	}
	for _, name := range figures {
		out = append(out, Column{Name: name})
	}
	return out
}

// labels is the number of columns with text.
func (t *Table) labels() int {
	n := 0
	for _, c := range t.Columns {
		if c.Label {
			n++
		}
	}
	return n
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
	var head []string
	for _, c := range t.Columns {
		head = append(head, FormatText.Escape(c.Name))
	}
	lines := [][]string{head}
	for _, line := range t.Lines {
		var cells []string
		for _, c := range line {
			cells = append(cells, FormatText.Escape(c.Text))
		}
		lines = append(lines, cells)
	}
	for k := t.labels(); k < len(t.Columns); k++ {
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
		fmt.Fprintln(out, FormatText.Escape(note.Text))
	}
	return out.Flush()
}

func (t Table) markdown() string {
	var b strings.Builder
	if t.Title != "" {
		fmt.Fprintf(&b, "**%s**\n\n%s\n\n", FormatMarkdown.Escape(t.Title), FormatMarkdown.Escape(t.Verdict))
	}
	for _, c := range t.Columns {
		b.WriteString("| " + FormatMarkdown.Escape(c.Name) + " ")
	}
	b.WriteString("|\n|" + strings.Repeat(" :-- |", t.labels()) + strings.Repeat(" --: |", len(t.Columns)-t.labels()) + "\n")
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
		b.WriteString("\n" + FormatMarkdown.Escape(note.Text) + "\n")
	}
	return b.String()
}

func (t Table) latex() string {
	var b strings.Builder
	if t.Title != "" {
		b.WriteString("% " + FormatText.Escape(t.Title) + "\n% " + FormatText.Escape(t.Verdict) + "\n")
	}
	b.WriteString("% needs \\usepackage{booktabs}\n")
	b.WriteString("\\begin{tabular}{" + strings.Repeat("l", t.labels()) + strings.Repeat("r", len(t.Columns)-t.labels()) + "}\n\\toprule\n")
	var head []string
	for _, c := range t.Columns {
		head = append(head, cmp.Or(c.TeX, FormatLaTeX.Escape(capital(c.Name))))
	}
	b.WriteString(strings.Join(head, " & ") + " \\\\\n\\midrule\n")
	for i, line := range t.Lines {
		if slices.Contains(t.Rules, i) {
			b.WriteString("\\midrule\n")
		}
		var cells []string
		for k, c := range line {
			text := FormatLaTeX.Escape(c.Text)
			if !t.Columns[k].Label {
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
		b.WriteString("% " + FormatText.Escape(note.Text) + "\n")
	}
	cells, _, _ := strings.Cut(b.String(), "\\bottomrule")
	if strings.ContainsFunc(cells, func(r rune) bool { return r > 'ſ' }) {
		b.WriteString("% has characters that pdfLaTeX may lack: LuaLaTeX and XeLaTeX have all of their font\n")
	}
	if t.footnote != "" {
		b.WriteString("\n{\\footnotesize $^{*}$ " + FormatLaTeX.Escape(t.footnote) + ".}\n")
	}
	return b.String()
}

// capital begins a name with a capital letter.
func capital(name string) string {
	first, size := utf8.DecodeRuneInString(name)
	if first >= utf8.RuneSelf { // σ
		return name
	}
	return strings.ToUpper(name[:size]) + name[size:]
}

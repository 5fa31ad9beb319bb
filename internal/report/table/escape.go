package table

import (
	"encoding/csv"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"ddiff/internal/report/sweep"
)

// Names, parameters and reasons come from other people's results. Whatever a format would obey is escaped where a cell is written: [Format.Escape]
// serves text, Markdown and LaTeX, [CSV] spreadsheets, package chart XML, and html/template and Preact the pages.

// Escape returns a text that the format shows literally, in one line.
func (f Format) Escape(text string) string {
	text = sweep.Printable(text)
	switch f {
	case FormatMarkdown:
		return markdownBlock.ReplaceAllString(markdownMarks.ReplaceAllString(strings.TrimSpace(text), `\$0`), `$1\$2$3`)
	case FormatLaTeX:
		return latexNames.Replace(norm.NFC.String(text)) // pdfLaTeX knows é, and not e with an accent behind it
	}
	return text
}

var (
	// markdownMarks end a cell, open a link, a formula or HTML, or change the letters.
	markdownMarks = regexp.MustCompile("[\\\\`*_|<>\\[\\]&~#$!]")
	// markdownBlock begins a list.
	markdownBlock = regexp.MustCompile(`^(\d*)([-+.)])( |$)`)
	// figurePattern matches a number, with its interval and the oracle's asterisk.
	figurePattern = regexp.MustCompile(`^([+-]?[0-9.]+(?:e[+-]?[0-9]+)?)(?: ±([0-9.]+(?:e[+-]?[0-9]+)?))?(\*?)$`)
)

// latexNames typesets what LaTeX would obey or pdfLaTeX lacks. A bracket or an asterisk at the beginning of a line would belong to the command
// before it.
var latexNames = strings.NewReplacer(
	`\`, `\textbackslash{}`, `~`, `\textasciitilde{}`, `^`, `\textasciicircum{}`, "`", `\textasciigrave{}`, `|`, `\textbar{}`,
	`&`, `\&`, `%`, `\%`, `$`, `\$`, `#`, `\#`, `_`, `\_`, `{`, `\{`, `}`, `\}`, `[`, `{[}`, `*`, `{*}`, `"`, `{\char34}`,
	`†`, `\textdagger{}`, `‡`, `\textdaggerdbl{}`, `<`, `\textless{}`, `>`, `\textgreater{}`, `±`, `$\pm$`, `−`, `$-$`,
	`σ`, `$\sigma$`, `γ`, `$\gamma$`, `λ`, `$\lambda$`, `μ`, `$\mu$`, `≤`, `$\leq$`, `≥`, `$\geq$`, `∞`, `$\infty$`,
)

// latexFigure typesets a number: signs and intervals in math mode, the oracle's asterisk as a superscript.
func latexFigure(text string) string {
	plain, marks := unmarked(text)
	m := figurePattern.FindStringSubmatch(plain)
	if m == nil {
		return FormatLaTeX.Escape(text)
	}
	number := m[1]
	if m[2] != "" {
		number += ` \pm ` + m[2]
	}
	if m[3] != "" {
		number += `^{*}`
	}
	if number != m[1] || strings.ContainsAny(number, "+-") {
		number = "$" + number + "$"
	}
	return number + FormatLaTeX.Escape(marks)
}

// CSV writes lines of comma-separated values.
type CSV struct{ out *csv.Writer }

// Number is the text of a number: a cell of a [CSV] that is written as it is.
type Number string

// NewCSV returns a writer that writes to w.
func NewCSV(w io.Writer) CSV { return CSV{csv.NewWriter(w)} }

// Line writes a line of texts and numbers. A text that a spreadsheet would compute gets an apostrophe before it.
func (c CSV) Line(cells ...any) {
	line := make([]string, len(cells))
	for i, cell := range cells {
		text, ok := cell.(string)
		if line[i] = fmt.Sprint(cell); !ok {
			continue
		}
		line[i] = sweep.Printable(text)
		if first, _ := utf8.DecodeRuneInString(text); strings.ContainsRune("=+-@＝＋－＠\t\r\n", first) {
			line[i] = "'" + line[i]
		}
	}
	c.out.Write(line) //nolint:errcheck // Flush has the error
}

// Flush writes what is buffered, and returns the first error of a write.
func (c CSV) Flush() error {
	if c.out.Flush(); c.out.Error() != nil {
		return fmt.Errorf("write csv: %w", c.out.Error())
	}
	return nil
}

package table

import (
	"cmp"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Texts is the number of text columns of a table that has no numbers.
const Texts = math.MaxInt

// The geometry of a table on a terminal, in columns of characters.
const (
	gap          = 2
	leastText    = 16 // a column with text is not shortened further
	leastWrapped = 30 // a last column with longer text wraps
)

// Writer aligns the cells of lines, which tabs separate: the first columns to the left, the others, which have numbers, to the right.
// If what it writes to has a method Columns() int with a positive answer, the width of a terminal, the lines fit: the last column
// wraps, columns with text are shortened, and columns from the right are left out, which a note states. Lines without tabs wrap at
// spaces.
type Writer struct {
	// Columns is the width of the terminal in characters, 0 without one.
	Columns int

	to     io.Writer
	labels int
	lines  strings.Builder
}

// NewWriter returns a writer whose first labels columns have text; see [Texts].
func NewWriter(to io.Writer, labels int) *Writer {
	t := &Writer{to: to, labels: labels}
	if terminal, ok := to.(interface{ Columns() int }); ok {
		t.Columns = terminal.Columns()
	}
	return t
}

// Write implements io.Writer. Nothing is written before Flush.
func (t *Writer) Write(p []byte) (int, error) { return t.lines.Write(p) }

// Flush writes the lines.
func (t *Writer) Flush() error {
	var out strings.Builder
	var block [][]string // consecutive lines with cells
	for line := range strings.Lines(t.lines.String()) {
		line = strings.TrimSuffix(line, "\n")
		if cells := strings.Split(line, "\t"); len(cells) > 1 {
			block = append(block, cells)
			continue
		}
		t.align(&out, block)
		block = nil
		out.WriteString(Wrap(line, t.Columns) + "\n")
	}
	t.align(&out, block)
	t.lines.Reset()
	_, err := io.WriteString(t.to, out.String())
	return err
}

// align writes the lines of a table.
func (t *Writer) align(out *strings.Builder, rows [][]string) {
	var natural []int
	for _, cells := range rows {
		for i, cell := range cells {
			if i == len(natural) {
				natural = append(natural, 0)
			}
			natural[i] = max(natural[i], utf8.RuneCountInString(cell))
		}
	}
	widths, wraps := t.fit(natural)
	for _, cells := range rows {
		line := ""
		for i, cell := range cells {
			if widths[i] < 0 {
				continue
			}
			space := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell)))
			switch {
			case i >= t.labels:
				line += space + cell
			case wraps && i == len(natural)-1:
				line += strings.ReplaceAll(wrap(cell, widths[i], true), "\n", "\n"+strings.Repeat(" ", utf8.RuneCountInString(line)))
			default:
				line += shorten(cell, widths[i]) + space
			}
			line += strings.Repeat(" ", gap)
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	if note := fitNote(rows, natural, widths, wraps); note != "" {
		out.WriteString(Wrap(note, t.Columns) + "\n")
	}
}

// fit returns the widths of columns on the terminal, -1 for one that is left out, and whether the last column wraps.
func (t *Writer) fit(natural []int) (widths []int, wraps bool) {
	widths = slices.Clone(natural)
	last := len(widths) - 1
	over := -gap - t.Columns
	for _, w := range widths {
		over += w + gap
	}
	if t.Columns == 0 || over <= 0 {
		return widths, false
	}
	shrink := func(i, least int) {
		by := min(over, widths[i]-least)
		if by > 0 {
			widths[i], over = widths[i]-by, over-by
		}
	}
	var texts []int // the widest first
	for i := 1; i < min(t.labels, last); i++ {
		texts = append(texts, i)
	}
	slices.SortStableFunc(texts, func(i, j int) int { return cmp.Compare(widths[j], widths[i]) })
	dropped := last
	if wraps = last > 0 && last < t.labels && widths[last] > leastWrapped; wraps {
		shrink(last, leastWrapped)
		dropped--
	} else if last > 0 && last < t.labels {
		texts = append(texts, last)
	}
	for _, i := range texts {
		shrink(i, leastText)
	}
	for ; over > 0 && dropped > 0; dropped-- {
		over -= widths[dropped] + gap
		widths[dropped] = -1
	}
	if wraps {
		shrink(last, leastText)
	}
	shrink(0, 1)
	if wraps {
		texts = slices.Insert(texts, 0, last)
	}
	for _, i := range texts { // the rest of the last column that was left out
		if by := min(-over, natural[i]-widths[i]); widths[i] >= 0 && by > 0 {
			widths[i], over = widths[i]+by, over+by
		}
	}
	return widths, wraps
}

// fitNote names the columns that a terminal does not show completely.
func fitNote(rows [][]string, natural, widths []int, wraps bool) string {
	var left, short []string
	for i, w := range widths {
		heading := ""
		if i < len(rows[0]) {
			heading = strings.TrimSpace(rows[0][i])
		}
		switch {
		case w < 0:
			left = append(left, heading)
		case w < natural[i] && (!wraps || i < len(widths)-1):
			short = append(short, heading)
		}
	}
	var parts []string
	if len(left) > 0 {
		parts = append(parts, "left out: "+strings.Join(left, ", "))
	}
	if len(short) > 0 {
		parts = append(parts, "shortened: "+strings.Join(short, ", "))
	}
	if len(parts) == 0 {
		return ""
	}
	return "(for this terminal's width " + strings.Join(parts, "; ") + "; a file or a pipe gets all)"
}

// shorten cuts a text to a width and marks the cut.
func shorten(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(0, width-1)]) + "…"
}

// Wrap breaks a line at spaces so that its parts have at most width characters, 0 for any number, and the indentation of the line. A longer
// word stays whole.
func Wrap(line string, width int) string {
	if width == 0 {
		return line
	}
	return wrap(line, width, false)
}

// wrap is Wrap; hard breaks longer words.
func wrap(line string, width int, hard bool) string {
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	rest := []rune(line[len(indent):])
	width = max(1, width-len(indent))
	var out []string
	for len(rest) > width {
		at := width
		for at > 0 && rest[at] != ' ' {
			at--
		}
		if at == 0 && hard {
			at = width
		}
		for at == 0 || at < len(rest) && rest[at] != ' ' && !hard {
			at++
		}
		out = append(out, indent+strings.TrimRight(string(rest[:at]), " "))
		rest = []rune(strings.TrimLeft(string(rest[at:]), " "))
	}
	if len(rest) > 0 || len(out) == 0 {
		out = append(out, indent+string(rest))
	}
	return strings.Join(out, "\n")
}

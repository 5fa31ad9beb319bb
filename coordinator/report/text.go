package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// writeText aligns text columns to the left and numbers to the right.
func writeText(w io.Writer, s Summary) error {
	labels := labelColumns(s.Varying)
	rows := [][]string{slices.Concat(labels, figureColumns(s))}
	for i := range s.Rows {
		rows = append(rows, slices.Concat(labelCells(s.Varying, &s.Rows[i], "-"), figureCells(s, &s.Rows[i], "-")))
	}
	if _, err := io.WriteString(w, alignText(rows, len(labels))); err != nil {
		return err
	}
	for _, note := range append([]string{sharedNote(s)}, notes(s)...) {
		if _, err := fmt.Fprintln(w, printable(note)); err != nil {
			return err
		}
	}
	return nil
}

// alignText aligns the first columns, the labels, to the left, and the others to the right.
func alignText(rows [][]string, labels int) string {
	widths := make([]int, labels)
	for _, cells := range rows {
		for i := range labels {
			cells[i] = printable(cells[i])
			widths[i] = max(widths[i], utf8.RuneCountInString(cells[i]))
		}
	}
	var table strings.Builder
	const gap = 2
	out := tabwriter.NewWriter(&table, 0, 0, gap, ' ', tabwriter.AlignRight)
	for _, cells := range rows {
		// The tab writer aligns all columns to the right: join the padded text columns into the first cell.
		line := make([]string, 0, len(cells))
		for i, width := range widths {
			cells[i] = fmt.Sprintf("%-*s", width, cells[i])
		}
		line = append(line, strings.Join(cells[:labels], "  "))
		line = append(line, cells[labels:]...)
		fmt.Fprintln(out, strings.Join(line, "\t")+"\t")
	}
	_ = out.Flush() // a strings.Builder has no errors
	var aligned strings.Builder
	for line := range strings.Lines(table.String()) {
		aligned.WriteString(line[gap:]) // right alignment puts the gap before each column, also before the first
	}
	return aligned.String()
}

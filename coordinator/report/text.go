package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// writeText aligns text columns to the left and numbers to the right.
func writeText(w io.Writer, s Summary) error {
	rows := [][]string{tableHeader()}
	for _, r := range s.Rows {
		rows = append(rows, tableCells(r, s.Oracle, "-"))
	}
	const textColumns = 2
	var widths [textColumns]int
	for _, cells := range rows {
		for i := range textColumns {
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
		line = append(line, fmt.Sprintf("%-*s  %-*s", widths[0], cells[0], widths[1], cells[1]))
		line = append(line, cells[textColumns:]...)
		fmt.Fprintln(out, strings.Join(line, "\t")+"\t")
	}
	if err := out.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		// Right alignment puts the gap before each column, also before the first.
		if _, err := io.WriteString(w, line[gap:]); err != nil {
			return err
		}
	}
	for _, note := range notes(s) {
		if _, err := fmt.Fprintln(w, printable(note)); err != nil {
			return err
		}
	}
	return nil
}

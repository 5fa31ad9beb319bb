package table_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"ddiff/coordinator/report/reporttest"
	"ddiff/coordinator/report/table"
)

// TestWriterFits: at every width of a terminal a table fits, names the columns that it does not show, and loses no word of a last column
// with text. Without a terminal it has all columns.
func TestWriterFits(t *testing.T) {
	t.Parallel()
	const reason = "the worker's device has lost its driver, and no other worker of the campaign has leased the item"
	write := func(columns, labels int) string {
		var out bytes.Buffer
		w := table.NewWriter(&out, labels)
		w.Columns = columns
		fmt.Fprintln(w, "A sentence with more than forty characters before the table.")
		fmt.Fprintln(w, "CAMPAIGN\tNAME\tWORKER\tREASON")
		fmt.Fprintf(w, "night\ta photograph with a very long name.png\tgpu-node-17\t%s\n", reason)
		reporttest.Must(t, w.Flush())
		return out.String()
	}
	if whole := write(0, table.Texts); !strings.Contains(whole, "night     a photograph with a very long name.png  gpu-node-17  "+reason+"\n") {
		t.Errorf("without a terminal:\n%s", whole)
	}
	for width := 20; width < 200; width++ {
		for _, labels := range []int{1, table.Texts} {
			text := write(width, labels)
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%d columns on a terminal of %d: %q", n, width, line)
				}
			}
			flat := strings.Join(strings.Fields(text), " ")
			if shown := strings.Contains(flat, "gpu-node-17"); shown == strings.Contains(strings.SplitAfter(flat+"left out:", "left out:")[1], "WORKER") {
				t.Errorf("width %d: the note is wrong:\n%s", width, text)
			}
			if got := strings.Contains(flat, "…"); got != strings.Contains(flat, "shortened: ") {
				t.Errorf("width %d: a shortened column is not named:\n%s", width, text)
			}
			if width >= 60 && labels == table.Texts && !strings.Contains(flat, "leased the") {
				t.Errorf("width %d: the reason is not complete:\n%s", width, text)
			}
		}
	}
}

package dataset_test

import (
	"fmt"
	"strings"
	"testing"

	"ddiff/manifest"
)

// TestTruncatedLists cuts lists at every byte. A row that lost a cell, a quote or a brace fails, and the rows before it are
// valid. The formats have no end mark: a cut between two rows, or inside of a last cell without quotes, is not seen.
func TestTruncatedLists(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for n := range 3 {
		write(t, folder, fmt.Sprintf("%d.png", n), picture(t, n))
	}
	s := sources(t, nil)
	for name, c := range map[string]struct {
		text   string
		header int // bytes
		// whole reports whether a last row without a line end is complete.
		whole func(row string) bool
	}{
		"plain.csv": {"image,name,task\n0.png,zero,hdr\n1.png,one,hdr\n2.png,two,hdr\n", 16, func(row string) bool { return strings.Count(row, ",") == 2 }},
		"quoted.csv": {"image,name\n\"0.png\",\"ze,ro\"\n\"1.png\",\"one\"\n\"2.png\",\"t\"\"wo\"\n", 11, func(row string) bool {
			return strings.Contains(row, `",`) && strings.Count(row, `"`)%2 == 0 // also with an empty last cell
		}},
		"rows.jsonl": {`{"image":"0.png","name":"zero"}` + "\n" + `{"image":"1.png"}` + "\n" + `{"image":"2.png"}` + "\n", 0, func(row string) bool {
			return strings.HasSuffix(row, "}")
		}},
	} {
		for at := c.header + 1; at <= len(c.text); at++ {
			text := c.text[:at]
			complete := strings.Count(text[c.header:], "\n")
			last := text[strings.LastIndex(text, "\n")+1:]
			wantValid, wantRows := complete, complete
			if last != "" {
				wantRows++
				if c.whole(last) {
					wantValid++
				}
			}
			all, _, err := rows(t, s, manifest.Dataset{Path: write(t, folder, name, []byte(text))})
			if err != nil {
				t.Fatalf("%s at %d: %v", name, at, err)
			}
			valid := 0
			for _, r := range all {
				if r.Err == nil {
					valid++
				}
			}
			if valid != wantValid || len(all) != wantRows {
				t.Errorf("%s at %d, last row %q: %d valid of %d rows, want %d of %d", name, at, last, valid, len(all), wantValid, wantRows)
			}
		}
	}
}

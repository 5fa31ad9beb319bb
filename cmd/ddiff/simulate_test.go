package main_test

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestRunSimulated runs a list that states digests, with --simulate: no image is read, equal rows are one item, and
// results.csv has every row. A second run starts again, because simulated results are not stored.
func TestRunSimulated(t *testing.T) {
	t.Parallel()
	const rows = 1500
	dir := t.TempDir()
	var list strings.Builder
	list.WriteString("image,sha256,width,height\n")
	for i := range rows {
		fmt.Fprintf(&list, "s3://images/%04d.png,%x,64,64\n", i, sha256.Sum256(fmt.Append(nil, i%1000)))
	}
	write(t, filepath.Join(dir, "list.csv"), []byte(list.String()))
	out := filepath.Join(dir, "out")
	for range 2 {
		e := restore(t, "--images", filepath.Join(dir, "list.csv"), "--task", "hdr", "--batch", "64", "--simulate", "1us", "--out", out)
		wantCode(t, e, 0)
		wantCounts(t, e, rows, 0, 0, out)
		wantMessage(t, e, "1500 items, 0 of them are done, 1500 to do")
		if lines := strings.Count(string(read(t, filepath.Join(out, "results.csv"))), "\n"); lines != 1+rows {
			t.Errorf("results.csv has %d lines, want a header and %d rows", lines, rows)
		}
	}
}

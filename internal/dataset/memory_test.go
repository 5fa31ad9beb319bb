//go:build !race

package dataset_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"ddiff/manifest"
)

// heap returns the bytes in use after a garbage collection.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Rows need memory for the hashes of their names alone; `make scale` submits a million.
// The race detector would take ten times as long.
func TestMemoryOfRows(t *testing.T) { // not parallel: it measures the heap
	const total = 200_000
	folder := t.TempDir()
	write(t, folder, "a.png", picture(t, 0))
	f, err := os.Create(filepath.Join(folder, "list.csv"))
	must(t, err)
	w := bufio.NewWriter(f)
	fmt.Fprintln(w, "image,name,sigma,seed,param.factor")
	for i := range total {
		fmt.Fprintf(w, "a.png,the picture of row %d,0.05,%d,4\n", i%900_000, i)
	}
	must(t, w.Flush())
	must(t, f.Close())
	var first, most int64
	n := 0
	for row, err := range sources(t, nil).Rows(t.Context(), manifest.Dataset{Path: f.Name()}, nil) {
		if err != nil || row.Err != nil {
			t.Fatal(err, row.Err)
		}
		switch n++; {
		case n == 10_000:
			first = heap()
		case n%100_000 == 0:
			most = max(most, heap())
		}
	}
	if n != total {
		t.Fatalf("%d rows, want %d", n, total)
	}
	t.Logf("rows=%d heap_growth_kib=%d", n, (most-first)>>10)
	if limit := int64(40 * total); most-first > limit {
		t.Errorf("heap grows by %d KiB after row 10,000, want at most %d", (most-first)>>10, limit>>10)
	}
}

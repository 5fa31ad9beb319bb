package dataset_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/internal/dataset"
	"ddiff/manifest"
)

// TestListIsWrittenWhileRead writes a list in place while it is read. Without an error, the rows of two versions would be
// mixed, and some be in neither.
func TestListIsWrittenWhileRead(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	list := func(name, letter string) string {
		var b strings.Builder
		for i := range 30000 { // more than one block
			fmt.Fprintf(&b, "%s/%040d.png\n", letter, i)
		}
		return write(t, folder, name, []byte(b.String()))
	}
	list("first.txt", "a")
	for _, path := range []string{"second.txt", "{second,first}.txt"} {
		t.Run(path, func(t *testing.T) {
			second := list("second.txt", "a")
			var last error
			n := 0
			for row, err := range sources(t, nil).Rows(t.Context(), manifest.Dataset{Path: filepath.Join(folder, path)}, nil) {
				if n++; n == 1 {
					list("second.txt", "b")
					must(t, os.Chtimes(second, time.Time{}, time.Unix(1e9, 0)))
				}
				if strings.Contains(row.Image, "/b/") {
					t.Fatalf("row %d is %s", n, row.Image)
				}
				last = err
			}
			if !errors.Is(last, dataset.ErrChanged) {
				t.Errorf("%d rows end with error %v", n, last)
			}
		})
	}
}

package dataset_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"ddiff/internal/dataset"
	"ddiff/internal/fuzztest"
	"ddiff/manifest"
)

// FuzzParquet: a file gives rows, of which the first cells are read, or errors of the kinds of damaged files, and a small one needs little
// memory.
func FuzzParquet(f *testing.F) {
	type line struct {
		Image string  `parquet:"image,dict"`
		Sigma float64 `parquet:"sigma,optional"`
		Seed  uint32  `parquet:"seed"`
	}
	lines := []line{{"a.png", 0.1, 1}, {"b.png", 0, 2}, {"a.png", 0.2, 3}}
	for _, options := range [][]parquet.WriterOption{
		nil, {parquet.Compression(&parquet.Snappy), parquet.DataPageVersion(1)}, {parquet.Compression(&parquet.Zstd), parquet.DataPageVersion(2)},
	} {
		f.Add(parquetFile(f, lines, 2, options...))
	}
	f.Add(photosParquet(f, 2, parquet.Compression(&parquet.Gzip)))

	s := sources(f, func(c *dataset.Config) { c.CacheBytes, c.MaxBytes = -1, 1<<20 })
	path := filepath.Join(f.TempDir(), "p.parquet")
	f.Fuzz(func(t *testing.T, data []byte) {
		must(t, os.WriteFile(path, data, 0o600))
		fuzztest.Limit(t, 24<<20+4096*len(data), func() {
			n := 0
			for row, err := range s.Rows(t.Context(), manifest.Dataset{Path: path}, nil) {
				if err != nil {
					if !errors.Is(err, dataset.ErrBadArchive) && !errors.Is(err, dataset.ErrTooLarge) && !errors.Is(err, manifest.ErrBadList) &&
						!errors.Is(err, manifest.ErrEmptyDataset) {
						t.Errorf("unexpected kind of error: %v", err)
					}
					if strings.ContainsAny(err.Error(), "\r\n\x1b") {
						t.Errorf("error of several lines: %q", err)
					}
					return
				}
				if n++; n > len(data) {
					t.Fatalf("%d rows in %d bytes", n, len(data))
				}
				if n > 2 || row.Err != nil || !strings.HasPrefix(row.Image, "parquet+") {
					continue
				}
				if _, err := s.Get(t.Context(), row.Image); err != nil && !errors.Is(err, dataset.ErrBadArchive) && !errors.Is(err, dataset.ErrTooLarge) &&
					!errors.Is(err, dataset.ErrNotFound) {
					t.Errorf("unexpected kind of error of %s: %v", row.Image, err)
				}
			}
		})
	})
}

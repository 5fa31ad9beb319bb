package dataset_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"ddiff/internal/dataset"
	"ddiff/manifest"
)

// A file of the size limit is read, wherever it lies, and so is its digest; a larger one is refused.
func TestSizeLimit(t *testing.T) {
	t.Parallel()
	const limit = 2 << 20
	type line struct {
		Image []byte `parquet:"image"`
	}
	for size, want := range map[int]error{limit: nil, limit + 1: dataset.ErrTooLarge} {
		folder := t.TempDir()
		data := bytes.Repeat([]byte{1, 2, 3}, size)[:size]
		write(t, folder, "a.bin", data)
		write(t, folder, "a.tar", tarFile(t, memberFile{name: "a.png", data: data}))
		write(t, folder, "a.parquet", parquetFile(t, []line{{data}}, 1, parquet.Compression(&parquet.Zstd), parquet.SkipPageBounds("image")))
		url, allowWeb := webServer(t, folder, nil)
		name, _, allowBucket := bucket(t, map[string][]byte{"a.bin": data})
		s := sources(t, func(c *dataset.Config) {
			allowBucket(c)
			allowWeb(c)
			c.MaxBytes = limit
		})
		all, _, err := rows(t, s, manifest.Dataset{Path: folder + "/a.tar"})
		if err != nil || len(all) != 1 || (all[0].Err == nil) != (want == nil) {
			t.Fatalf("row of %d bytes: %+v, %v, want %v", size, all, err, want)
		}
		member := all[0].Image
		for _, address := range []string{
			url + "/a.bin", "s3://" + name + "/a.bin", member, strings.Replace(member, "file://"+folder, url, 1),
		} {
			got, err := s.Get(t.Context(), address)
			if !errors.Is(err, want) || err == nil && !bytes.Equal(got, data) {
				t.Errorf("%s of %d bytes: %d bytes, %v, want %v", address, size, len(got), err, want)
			}
		}
		// The page of a column may exceed its cell by the length of the cell.
		if got, err := s.Get(t.Context(), "parquet+file://"+folder+"/a.parquet#row=0&column=image"); want != nil && !errors.Is(err, want) {
			t.Errorf("cell of %d bytes: %d bytes, %v, want %v", size, len(got), err, want)
		}
	}
}

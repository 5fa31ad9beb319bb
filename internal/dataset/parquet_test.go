package dataset_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"ddiff/internal/dataset"
	"ddiff/manifest"
)

// photo is a row in the format of the Hugging Face libraries.
type photo struct {
	Image struct {
		Bytes []byte  `parquet:"bytes,optional"`
		Path  *string `parquet:"path,optional"`
	} `parquet:"image"`
	Label int64 `parquet:"label"`
}

// parquetFile writes rows in groups of perGroup.
func parquetFile[T any](t testing.TB, rows []T, perGroup int, options ...parquet.WriterOption) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[T](&buf, append(options, parquet.MaxRowsPerRowGroup(int64(perGroup)))...)
	for i := 0; i < len(rows); i += perGroup {
		if _, err := w.Write(rows[i:min(i+perGroup, len(rows))]); err != nil {
			t.Fatal(err)
		}
		must(t, w.Flush())
	}
	must(t, w.Close())
	return buf.Bytes()
}

func photosParquet(t testing.TB, n int, options ...parquet.WriterOption) []byte {
	t.Helper()
	all := make([]photo, n)
	for i := range all {
		path := fmt.Sprintf("photos/cat-%d.png", i)
		all[i].Image.Bytes, all[i].Image.Path, all[i].Label = picture(t, i), &path, int64(i)
	}
	return parquetFile(t, all, 4, options...)
}

func TestParquetImages(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]parquet.WriterOption{
		"plain":  nil,
		"snappy": {parquet.Compression(&parquet.Snappy)},
		"gzip":   {parquet.Compression(&parquet.Gzip)},
		"zstd":   {parquet.Compression(&parquet.Zstd)},
		"v1":     {parquet.DataPageVersion(1), parquet.Compression(&parquet.Zstd), parquet.PageBufferSize(200)},
		"v2":     {parquet.DataPageVersion(2), parquet.Compression(&parquet.Snappy), parquet.PageBufferSize(200)},
	} {
		path := write(t, t.TempDir(), "p.parquet", photosParquet(t, 10, options...))
		names, images := validRows(t, sources(t, nil), manifest.Dataset{Path: path})
		want(t, names, images, "cat-0 cat-1 cat-2 cat-3 cat-4 cat-5 cat-6 cat-7 cat-8 cat-9", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// TestParquetGlob: a pattern of files with rows names each of them; a folder of them says so.
func TestParquetGlob(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range []string{"train-00001.parquet", "train-00000.parquet"} {
		write(t, folder, name, photosParquet(t, 2))
	}
	write(t, folder, "train-00002.parquet", []byte("damaged"))
	s := sources(t, nil)
	all, _, err := rows(t, s, manifest.Dataset{Path: folder + "/*.parquet"})
	if err != nil || len(all) != 5 || all[4].Err == nil || all[3].Name != "cat-1-2" {
		t.Errorf("%d rows %+v, error %v", len(all), all, err)
	}
	if _, _, err := rows(t, s, manifest.Dataset{Path: folder + "/*.tar"}); !errors.Is(err, manifest.ErrNoDataset) {
		t.Errorf("no match: %v", err)
	}
	_, _, err = rows(t, s, manifest.Dataset{Path: folder})
	if err == nil || !strings.Contains(err.Error(), strconv.Quote(folder+"/*.parquet")) {
		t.Errorf("folder: %v", err)
	}
}

// Values in a dictionary, which pyarrow writes by default.
func TestParquetDictionaries(t *testing.T) {
	t.Parallel()
	type line struct {
		Image []byte `parquet:"image,dict"`
		Name  string `parquet:"name,dict"`
	}
	var all []line
	for i := range 9 {
		all = append(all, line{picture(t, i%3), []string{"cat", "dog"}[i%2]})
	}
	for _, version := range []int{1, 2} {
		path := write(t, t.TempDir(), "p.parquet", parquetFile(t, all, 5, parquet.DataPageVersion(version), parquet.Compression(&parquet.Snappy)))
		names, images := validRows(t, sources(t, nil), manifest.Dataset{Path: path})
		want(t, names, images, "cat dog cat-2 dog-2 cat-3 dog-3 cat-4 dog-4 cat-5", 0, 1, 2, 0, 1, 2, 0, 1, 2)
	}
}

func TestParquetColumns(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, folder, "img/a.png", picture(t, 1))
	write(t, folder, "b.png", picture(t, 2))
	type line struct {
		File   string   `parquet:"file_path"`
		Noise  *float32 `parquet:"noise,optional"`
		Seed   uint64   `parquet:"seed"`
		Factor int32    `parquet:"param.factor"`
		Digest string   `parquet:"sha256,optional"`
		W, H   int16
		Tags   []string `parquet:"tags"`
		Raw    []byte   `parquet:"raw"`
	}
	noise := float32(0.1)
	path := write(t, folder, "list.parquet", parquetFile(t, []line{
		{File: "img/a.png", Noise: &noise, Seed: 1<<64 - 1, Factor: 4, Digest: strings.Repeat("ab", 32), W: 8, H: 9, Raw: picture(t, 3)},
		{File: "missing.png", Seed: 1, W: 1, H: 1},
		{File: "b.png", W: 1, H: 1, Seed: 2},
	}, 2))
	d := manifest.Dataset{Path: path, Columns: map[string]string{"image": "file_path", "sigma": "noise", "mask": "raw", "width": "W", "height": "H"}}
	s := sources(t, nil)
	all, _, err := rows(t, s, d)
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	a := all[0]
	if a.Err != nil || a.Name != "img/a" || *a.Overrides.Sigma != 0.1 || *a.Overrides.Seed != 1<<64-1 || a.Overrides.Params["factor"] != 4 ||
		a.ImageSHA256 != strings.Repeat("ab", 32) || a.Width != 8 || a.Height != 9 {
		t.Errorf("%+v", a)
	}
	if mask, err := s.Get(t.Context(), a.Overrides.Mask); err != nil || !bytes.Equal(mask, picture(t, 3)) {
		t.Errorf("mask %s: %v", a.Overrides.Mask, err)
	}
	if all[1].Err == nil || all[1].Err.Error() != `list.parquet:2: image: "missing.png": no such file or directory` || all[2].Err != nil || all[2].Name != "b" {
		t.Errorf("%v, %+v", all[1].Err, all[2])
	}
	for _, tc := range []struct {
		columns map[string]string
		want    string
	}{
		{nil, `list.parquet: the header has neither column "image" nor "measurement"`},
		{map[string]string{"image": "file_pth"}, `dataset.columns.image: unknown column "file_pth" (did you mean "file_path"?)`},
	} {
		if _, _, err := rows(t, s, manifest.Dataset{Path: path, Columns: tc.columns}); !errors.Is(err, manifest.ErrBadList) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %v", tc.columns, err)
		}
	}
	for address, want := range map[string]error{
		"#row=9&column=raw": dataset.ErrNotFound, "#row=0&column=none": dataset.ErrNotFound, "#row=0&column=seed": dataset.ErrNotFound,
	} {
		if _, err := s.Get(t.Context(), "parquet+file://"+path+address); !errors.Is(err, want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// If the cells are empty, the names are paths.
func TestParquetPathsWithoutBytes(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	all := make([]photo, 2)
	for i := range all {
		path := fmt.Sprintf("%d.png", i)
		write(t, folder, path, picture(t, i))
		all[i].Image.Path = &path
	}
	path := write(t, folder, "p.parquet", parquetFile(t, all, 10))
	names, images := validRows(t, sources(t, nil), manifest.Dataset{Path: path})
	want(t, names, images, "0 1", 0, 1)
}

// An empty cell among files is unset: its name is a path, and without a name the row has no such file.
func TestParquetEmptyCells(t *testing.T) {
	t.Parallel()
	type file struct {
		Bytes []byte  `parquet:"bytes,optional"`
		Path  *string `parquet:"path,optional"`
	}
	type line struct {
		Image file   `parquet:"image"`
		Mask  []byte `parquet:"mask,optional"`
	}
	folder := t.TempDir()
	write(t, folder, "b.png", picture(t, 2))
	a, b := "a.png", "b.png"
	path := write(t, folder, "p.parquet", parquetFile(t, []line{
		{Image: file{Bytes: picture(t, 1), Path: &a}, Mask: picture(t, 3)},
		{Image: file{Path: &b}},
		{},
		{Image: file{Bytes: picture(t, 4)}},
	}, 4))
	s := sources(t, nil)
	all, _, err := rows(t, s, manifest.Dataset{Path: path})
	if err != nil || len(all) != 4 {
		t.Fatal(all, err)
	}
	for i, number := range map[int]int{0: 1, 1: 2, 3: 4} {
		if data, err := s.Get(t.Context(), all[i].Image); all[i].Err != nil || err != nil || !bytes.Equal(data, picture(t, number)) {
			t.Errorf("row %d: %+v, %v", i, all[i], err)
		}
	}
	if all[0].Overrides.Mask == "" || all[1].Overrides.Mask != "" || all[3].Overrides.Mask != "" || all[1].Name != "b" {
		t.Errorf("%+v", all)
	}
	if all[2].Err == nil || !strings.Contains(all[2].Err.Error(), "neither image nor measurement") {
		t.Error(all[2].Err)
	}
}

// A table without rows has a row group, and no page in it. It is not damaged.
func TestParquetWithoutRows(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, folder, "a.png", picture(t, 1))
	path := write(t, folder, "empty.parquet", pyarrowEmpty)
	if _, _, err := rows(t, sources(t, nil), manifest.Dataset{Path: path}); !errors.Is(err, manifest.ErrEmptyDataset) {
		t.Error(err)
	}
	write(t, folder, "list.txt", []byte("a.png"))
	names, images := validRows(t, sources(t, nil), manifest.Dataset{Path: folder + "/{empty.parquet,list.txt}"})
	want(t, names, images, "a", 1)
}

// pyarrowEmpty is pyarrow.table({"image": pyarrow.array([], pyarrow.string())}) as write_table of pyarrow 26 writes it.
var pyarrowEmpty, _ = base64.StdEncoding.DecodeString("UEFSMRUEFQAVAEwVABUAEgAAFQQZLDUAGAZzY2hlbWEVAgAVDCUCGAVpbWFnZSUATBwAAAAWABkcGRwmABwVDBklAAYZGAVpbWFnZRUA" +
	"FgAWHBYcJgAmCCkcFQQVABUCAAAAFhwWACYIFhwAKCBwYXJxdWV0LWNwcC1hcnJvdyB2ZXJzaW9uIDI2LjAuMRkcHAAAAIIAAABQQVIx")

// Files that decompress to much more than their size are refused without a panic.
func TestParquetBombs(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	type line struct {
		Image []byte `parquet:"image"`
	}
	const size = 8 << 20
	zeros := make([]byte, size)
	s := sources(t, func(c *dataset.Config) { c.MaxBytes = 1 << 20 })
	for name, codec := range map[string]parquet.WriterOption{
		"plain": parquet.Compression(&parquet.Uncompressed), "snappy": parquet.Compression(&parquet.Snappy),
		"gzip": parquet.Compression(&parquet.Gzip), "zstd": parquet.Compression(&parquet.Zstd),
	} {
		path := write(t, folder, name+".parquet", parquetFile(t, []line{{zeros}}, 1, codec, parquet.SkipPageBounds("image")))
		if _, err := s.Get(t.Context(), "parquet+file://"+path+"#row=0&column=image"); !errors.Is(err, dataset.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	path := write(t, folder, "bounds.parquet", parquetFile(t, []line{{zeros}}, 1, parquet.Compression(&parquet.Snappy)))
	if _, err := s.Get(t.Context(), "parquet+file://"+path+"#row=0&column=image"); !errors.Is(err, dataset.ErrTooLarge) {
		t.Errorf("long header: %v", err)
	}
	for name, codec := range map[string]parquet.WriterOption{
		"brotli": parquet.Compression(&parquet.Brotli), "lz4": parquet.Compression(&parquet.Lz4Raw),
	} {
		path := write(t, folder, name+".parquet", parquetFile(t, []line{{picture(t, 0)}}, 1, codec))
		if _, err := s.Get(t.Context(), "parquet+file://"+path+"#row=0&column=image"); !errors.Is(err, dataset.ErrBadArchive) || !strings.Contains(err.Error(), "snappy") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, data := range map[string][]byte{
		"words": []byte("these are no more than words"), "short": []byte("PAR1"),
		"footer": append([]byte("PAR1"), "\xff\xff\xff\x7fPAR1"...), "magic": []byte("PAR1\x00\x00\x00\x00PARE"),
	} {
		path := write(t, folder, name+".parquet", data)
		if _, _, err := rows(t, s, manifest.Dataset{Path: path}); !errors.Is(err, dataset.ErrBadArchive) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Damage results in an error or a row, never in a panic.
func TestParquetDamage(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	whole := photosParquet(t, 6, parquet.Compression(&parquet.Snappy))
	s := sources(t, func(c *dataset.Config) { c.CacheBytes = -1; c.MaxBytes = 1 << 20 })
	bad := 0
	for at := 0; at < len(whole); at += 7 {
		data := bytes.Clone(whole)
		data[at] ^= 0xff
		path := write(t, folder, "p.parquet", data)
		all, _, err := rows(t, s, manifest.Dataset{Path: path})
		if err != nil {
			bad++
			continue
		}
		for _, r := range all {
			if r.Err == nil {
				if _, err := s.Get(t.Context(), r.Image); err != nil {
					bad++
				}
			}
		}
	}
	if bad == 0 {
		t.Error("no damage was detected")
	}
	t.Logf("%d of %d damaged files were seen to be damaged", bad, len(whole)/7)
}

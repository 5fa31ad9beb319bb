package dataset

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// oneColumn writes a Parquet file with the numbers below n in groups of two rows.
func oneColumn(t *testing.T, n int) []byte {
	t.Helper()
	type row struct {
		N int64 `parquet:"n"`
	}
	var out bytes.Buffer
	w := parquet.NewGenericWriter[row](&out, parquet.MaxRowsPerRowGroup(2))
	for i := range n {
		if _, err := w.Write([]row{{int64(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	must(t, w.Close())
	return out.Bytes()
}

// TestGuardPages: the page that begins with the wanted row is checked before it is decoded, and no later page is read.
func TestGuardPages(t *testing.T) {
	t.Parallel()
	var pages []byte
	for _, header := range []format.PageHeader{
		{DataPageHeader: thrift.Null[format.DataPageHeader]{V: format.DataPageHeader{NumValues: 3}, Valid: true}},
		{DataPageHeader: thrift.Null[format.DataPageHeader]{V: format.DataPageHeader{NumValues: 3, Encoding: format.DeltaByteArray}, Valid: true}},
	} {
		data, err := thrift.Marshal(&thrift.CompactProtocol{}, header)
		must(t, err)
		pages = append(pages, data...)
	}
	data := oneColumn(t, 20)
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	must(t, err)
	guarded := &table{file: file, read: bytes.NewReader(append(pages, make([]byte, len(data))...)), maxBytes: 1 << 20}
	meta := &format.ColumnMetaData{TotalCompressedSize: int64(len(pages))}
	for last, want := range map[int64]error{0: nil, 2: nil, 3: ErrBadArchive, 5: ErrBadArchive} {
		if err := guarded.guardPages(meta, last); !errors.Is(err, want) {
			t.Errorf("up to row %d: %v, want %v", last, err, want)
		}
	}
}

// TestRowsOfGroups: a file has at most as many rows as bytes, and may have row groups without rows.
func TestRowsOfGroups(t *testing.T) {
	t.Parallel()
	data := oneColumn(t, 6)
	footer := len(data) - 8 - int(data[len(data)-8]) - int(data[len(data)-7])<<8
	size := int64(len(data)) + 64 // of all files below
	for _, c := range []struct {
		groups []int64
		words  string // empty: the file is valid
	}{
		{[]int64{2, 0, 2}, ""},
		{[]int64{size, 0, 0}, ""},
		{[]int64{0, size - 1, 1}, ""},
		{[]int64{0, size + 1, 0}, "row group 1 claims"},
		{[]int64{2, 2, size - 3}, "row group 2 claims"},
		{[]int64{math.MaxInt64, math.MaxInt64, 2}, "row group 0 claims"},
		{[]int64{2, -1, 2}, "row group 1"},
	} {
		var meta format.FileMetaData
		must(t, thrift.Unmarshal(&thrift.CompactProtocol{}, data[footer:len(data)-8], &meta))
		total := int64(0)
		for i, n := range c.groups {
			meta.RowGroups[i].NumRows = n
			total += n
		}
		encoded, err := thrift.Marshal(&thrift.CompactProtocol{}, meta)
		must(t, err)
		// Bytes between the pages and the footer make the files equally large.
		changed := append([]byte(nil), data[:footer]...)
		changed = append(changed, make([]byte, int(size)-8-len(encoded)-footer)...)
		changed = append(append(changed, encoded...), byte(len(encoded)), byte(len(encoded)>>8), 0, 0)
		changed = append(changed, "PAR1"...)
		opened, err := openTable(t.Context(), inMemory(changed), 1<<20)
		if c.words == "" && (err != nil || opened.rows != total) || c.words != "" && (!errors.Is(err, ErrBadArchive) || !strings.Contains(err.Error(), c.words)) {
			t.Errorf("%d rows: %+v, %v, want %q", c.groups, opened, err, c.words)
		}
	}
}

// TestColumnIsGuarded: a column is checked to its end before its first value is read, and up to a row for this row.
func TestColumnIsGuarded(t *testing.T) {
	t.Parallel()
	type row struct {
		Text string `parquet:"text"`
	}
	var out bytes.Buffer
	w := parquet.NewGenericWriter[row](&out, parquet.PageBufferSize(100))
	for i := range 40 {
		if _, err := w.Write([]row{{strings.Repeat("x", 10+i*i)}}); err != nil {
			t.Fatal(err)
		}
	}
	must(t, w.Close())
	opened, err := openTable(t.Context(), inMemory(out.Bytes()), 1000)
	must(t, err)
	column := leaf{name: "text", column: opened.file.Root().Columns()[0]}
	for at, valid := range map[int64]bool{0: false, 1: true, 39: false} {
		v, err := opened.values(0, column, at)
		if (err == nil) != valid || err != nil && !errors.Is(err, ErrTooLarge) {
			t.Errorf("from row %d: %v", at, err)
		}
		if err == nil {
			v.close()
		}
	}
}

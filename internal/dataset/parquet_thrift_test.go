package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// longest is the largest length that a list or a text may claim.
var longest = []byte{0xff, 0xff, 0xff, 0xff, 0x07}

// parquetOf returns a Parquet file with a footer.
func parquetOf(footer []byte) []byte {
	file := append([]byte("PAR1"), footer...)
	return append(binary.LittleEndian.AppendUint32(file, uint32(len(footer))), "PAR1"...)
}

// TestMetadataBombs: footers and headers of pages that would end the process are errors.
func TestMetadataBombs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		metadata []byte
		words    string
	}{
		"nested structures": {bytes.Repeat([]byte{0x1c}, 8<<20), "more than 64 structures"},
		"nested lists":      {bytes.Repeat([]byte{0x19, 0x1c}, 4<<20), "more than 64 structures"},
		"nested maps":       {append([]byte{0x1b}, bytes.Repeat([]byte{0x01, 0xbb}, 4<<20)...), "more than 64 structures"},
		"columns":           {slices.Concat([]byte{0x29, 0xfc}, longest), "more than 1048576 elements"},
		"row groups":        {slices.Concat([]byte{0x49, 0xfc}, longest), "more than 1048576 elements"},
		"a map":             {slices.Concat([]byte{0xfb}, longest, []byte{0x11}), "more than 1048576 elements"},
		"many lists":        {slices.Repeat(slices.Concat([]byte{0xf9, 0xf1, 0xff, 0xff, 0x3f}, make([]byte, 1<<20-1)), 2), "more than 1048576 elements"},
		"a text":            {slices.Concat([]byte{0x68}, longest), ""},
		"unknown type":      {[]byte{0x1f}, "unknown type 15"},
		"nothing":           {nil, ""},
	} {
		file := bytes.NewReader(parquetOf(c.metadata))
		err := checkFooter(file, file.Size())
		if !errors.Is(err, ErrBadArchive) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s as the footer: %v, want %q", name, err, c.words)
		}
		table := &table{read: bytes.NewReader(c.metadata), maxBytes: 256 << 20}
		if _, _, err := table.pageHeader(0, int64(len(c.metadata))); !errors.Is(err, ErrBadArchive) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s as the header of a page: %v, want %q", name, err, c.words)
		}
	}
}

// TestCheckThrift: every kind of field is accepted where it is complete, and each shorter part is truncated.
func TestCheckThrift(t *testing.T) {
	t.Parallel()
	header := format.PageHeader{UncompressedPageSize: 7, CompressedPageSize: 5}
	page, err := thrift.Marshal(&thrift.CompactProtocol{}, &header)
	must(t, err)
	fields := slices.Concat(
		[]byte{0x11, 0x12}, []byte{0x13, 9}, []byte{0x14, 2}, []byte{0x15, 0x80, 1}, []byte{0x16, 0x80, 0x80, 1}, // both truths, numbers
		append([]byte{0x17}, make([]byte, 8)...), append([]byte{0x1d}, make([]byte, 16)...), // a double, a UUID
		[]byte{0x18, 2, 'a', 'b'}, []byte{0x19, 0x21, 1, 0}, []byte{0x1a, 0x15, 4}, []byte{0x1b, 1, 0x85, 1, 'k', 6}, []byte{0x1b, 0}, // text, list, set, maps
		[]byte{0x1c, 0x15, 2, 0}, []byte{0x05, 0x80, 2, 4}, []byte{0}, // a structure, a field with its own number, the end
	)
	for _, data := range [][]byte{page, fields} {
		if err := checkThrift(append(slices.Clone(data), "more"...)); err != nil {
			t.Errorf("%x: %v", data, err)
		}
		for n := range data {
			if err := checkThrift(data[:n]); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%x: %v, want the end of the file", data[:n], err)
			}
		}
	}
	nested := func(n int) []byte { return append(bytes.Repeat([]byte{0x1c}, n), make([]byte, n+1)...) }
	if err := checkThrift(nested(maxNesting - 1)); err != nil {
		t.Errorf("%d structures inside each other: %v", maxNesting, err)
	}
	if err := checkThrift(nested(maxNesting)); !errors.Is(err, ErrBadArchive) {
		t.Errorf("%d structures inside each other: %v", maxNesting+1, err)
	}
}

package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// TestCheckPage: the limits of a page of a file of 100 bytes from byte 20 on, whose column ends at byte 80.
func TestCheckPage(t *testing.T) {
	t.Parallel()
	valid := func(v format.DataPageHeader) thrift.Null[format.DataPageHeader] {
		return thrift.Null[format.DataPageHeader]{V: v, Valid: true}
	}
	valid2 := func(v format.DataPageHeaderV2) thrift.Null[format.DataPageHeaderV2] {
		return thrift.Null[format.DataPageHeaderV2]{V: v, Valid: true}
	}
	dictionary := func(v format.DictionaryPageHeader) thrift.Null[format.DictionaryPageHeader] {
		return thrift.Null[format.DictionaryPageHeader]{V: v, Valid: true}
	}
	table := &table{read: bytes.NewReader(make([]byte, 100)), maxBytes: 50}
	for name, c := range map[string]struct {
		header format.PageHeader
		codec  format.CompressionCodec
		want   error
		words  string
	}{
		"largest":                {format.PageHeader{CompressedPageSize: 50, UncompressedPageSize: 50}, format.Uncompressed, nil, ""},
		"empty":                  {format.PageHeader{}, format.Snappy, nil, ""},
		"negative size":          {format.PageHeader{CompressedPageSize: -1}, format.Uncompressed, ErrBadArchive, "claims -1 of 60 bytes"},
		"negative length":        {format.PageHeader{UncompressedPageSize: -1}, format.Uncompressed, ErrBadArchive, "claims"},
		"behind the column":      {format.PageHeader{CompressedPageSize: 61}, format.Uncompressed, ErrBadArchive, "claims 61 of 60 bytes"},
		"compressed too large":   {format.PageHeader{CompressedPageSize: 51}, format.Uncompressed, ErrTooLarge, "page has 51 bytes, at most 50"},
		"decompressed too large": {format.PageHeader{UncompressedPageSize: 51}, format.Uncompressed, ErrTooLarge, "page has 51 bytes, at most 50"},
		"most values":            {format.PageHeader{DataPageHeader: valid(format.DataPageHeader{NumValues: maxPageValues})}, format.Uncompressed, nil, ""},
		"values":                 {format.PageHeader{DataPageHeader: valid(format.DataPageHeader{NumValues: maxPageValues + 1})}, format.Uncompressed, ErrTooLarge, "values"},
		"values of version 2":    {format.PageHeader{DataPageHeaderV2: valid2(format.DataPageHeaderV2{NumValues: maxPageValues + 1})}, format.Uncompressed, ErrTooLarge, "values"},
		"values of a dictionary": {format.PageHeader{DictionaryPageHeader: dictionary(format.DictionaryPageHeader{NumValues: maxPageValues + 1})}, format.Uncompressed, ErrTooLarge, "values"},
		"deltas":                 {format.PageHeader{DataPageHeader: valid(format.DataPageHeader{Encoding: format.DeltaByteArray})}, format.Uncompressed, ErrBadArchive, "DELTA_BYTE_ARRAY"},
		"deltas of version 2":    {format.PageHeader{DataPageHeaderV2: valid2(format.DataPageHeaderV2{Encoding: format.DeltaByteArray})}, format.Uncompressed, ErrBadArchive, "DELTA_BYTE_ARRAY"},
		"deltas of a dictionary": {format.PageHeader{DictionaryPageHeader: dictionary(format.DictionaryPageHeader{Encoding: format.DeltaByteArray})}, format.Uncompressed, ErrBadArchive, "DELTA_BYTE_ARRAY"},
		"levels only": {format.PageHeader{CompressedPageSize: 9, UncompressedPageSize: 9,
			DataPageHeaderV2: valid2(format.DataPageHeaderV2{RepetitionLevelsByteLength: 4, DefinitionLevelsByteLength: 5})}, format.Snappy, nil, ""},
		"levels above the page": {format.PageHeader{CompressedPageSize: 8, UncompressedPageSize: 9,
			DataPageHeaderV2: valid2(format.DataPageHeaderV2{RepetitionLevelsByteLength: 4, DefinitionLevelsByteLength: 5})}, format.Snappy, ErrBadArchive, "levels"},
		"levels above the length": {format.PageHeader{CompressedPageSize: 9, UncompressedPageSize: 8,
			DataPageHeaderV2: valid2(format.DataPageHeaderV2{RepetitionLevelsByteLength: 4, DefinitionLevelsByteLength: 5})}, format.Snappy, ErrBadArchive, "levels"},
		"negative repetitions": {format.PageHeader{CompressedPageSize: 9, UncompressedPageSize: 9,
			DataPageHeaderV2: valid2(format.DataPageHeaderV2{RepetitionLevelsByteLength: -1, DefinitionLevelsByteLength: 5})}, format.Snappy, ErrBadArchive, "levels"},
		"negative definitions": {format.PageHeader{CompressedPageSize: 9, UncompressedPageSize: 9,
			DataPageHeaderV2: valid2(format.DataPageHeaderV2{RepetitionLevelsByteLength: 5, DefinitionLevelsByteLength: -1})}, format.Snappy, ErrBadArchive, "levels"},
		"not compressed": {format.PageHeader{CompressedPageSize: 9, UncompressedPageSize: 9,
			DataPageHeaderV2: valid2(format.DataPageHeaderV2{IsCompressed: thrift.Null[bool]{Valid: true}})}, format.Gzip, nil, ""},
		"compressed": {format.PageHeader{CompressedPageSize: 9, UncompressedPageSize: 9,
			DataPageHeaderV2: valid2(format.DataPageHeaderV2{IsCompressed: thrift.Null[bool]{Valid: true, V: true}})}, format.Gzip, ErrBadArchive, "unexpected EOF"},
		"zeros are no gzip": {format.PageHeader{CompressedPageSize: 9, UncompressedPageSize: 9}, format.Gzip, ErrBadArchive, "unexpected EOF"},
		"brotli":            {format.PageHeader{CompressedPageSize: 9, UncompressedPageSize: 9}, format.Brotli, ErrBadArchive, "not supported"},
	} {
		err := table.checkPage(&c.header, 20, 80, c.codec)
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v, want %v with %q", name, err, c.want, c.words)
		}
	}
}

// TestCheckPageBehindLevels: the levels of a page of version 2 are not compressed, and are not part of its values.
func TestCheckPageBehindLevels(t *testing.T) {
	t.Parallel()
	packed := snappy.Encode(nil, make([]byte, 20))
	table := &table{read: bytes.NewReader(append(make([]byte, 24), packed...)), maxBytes: 50}
	for size, want := range map[int32]error{24: nil, 23: ErrBadArchive} {
		header := &format.PageHeader{CompressedPageSize: int32(4 + len(packed)), UncompressedPageSize: size}
		header.DataPageHeaderV2.Valid = true
		header.DataPageHeaderV2.V.RepetitionLevelsByteLength, header.DataPageHeaderV2.V.DefinitionLevelsByteLength = 1, 3
		if err := table.checkPage(header, 20, 24+int64(len(packed)), format.Snappy); !errors.Is(err, want) {
			t.Errorf("page that claims %d bytes: %v, want %v", size, err, want)
		}
	}
}

// TestCheckFooterLimit: a footer above the limit is refused before it is read.
func TestCheckFooterLimit(t *testing.T) {
	t.Parallel()
	const size = maxFooter + 100
	end := append(binary.LittleEndian.AppendUint32(nil, maxFooter+1), "PAR1"...)
	// Only the end of the file is there: another read fails.
	r := io.NewSectionReader(offsetReader{bytes.NewReader(end), size - 8}, 0, size)
	if err := checkFooter(r, size); !errors.Is(err, ErrBadArchive) {
		t.Errorf("error %v", err)
	}
}

// offsetReader reads the bytes of a file from an offset on.
type offsetReader struct {
	io.ReaderAt
	offset int64
}

func (r offsetReader) ReadAt(p []byte, at int64) (int, error) {
	return r.ReaderAt.ReadAt(p, at-r.offset)
}

// TestPageHeaderLimit: a header that does not end within the column is damage, and one above the limit is refused.
func TestPageHeaderLimit(t *testing.T) {
	t.Parallel()
	// A list of 2^20 bytes in an unknown field of the header.
	data := append([]byte{0x18, 0x80, 0x80, 0x40}, make([]byte, 1<<21)...)
	for name, c := range map[string]struct {
		end, limit int64
		want       error
	}{
		"truncated": {100, 1000, ErrBadArchive}, "larger than allowed": {1000, 100, ErrTooLarge}, "both": {100, 100, ErrBadArchive},
	} {
		table := &table{read: bytes.NewReader(data), maxBytes: c.limit}
		if _, _, err := table.pageHeader(0, c.end); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

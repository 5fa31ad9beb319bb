package dataset

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// maxPageValues is how many values a page has at most: a few bytes can claim any number.
const maxPageValues = 1 << 24

// guardPages walks the pages of a column chunk up to the one with row last, counted from the
// chunk's beginning, before any of them is decoded. It refuses pages that are or unpack to
// more than most bytes, whatever their headers say, and encodings that grow without bound.
func (t *table) guardPages(meta *format.ColumnMetaData, last int64) error {
	at := meta.DataPageOffset
	if d := meta.DictionaryPageOffset; d > 0 && d < at {
		at = d
	}
	end := at + meta.TotalCompressedSize
	if at < 0 || end < at || end > t.file.Size() {
		return fmt.Errorf("%w: a column lies outside of the file", ErrBadArchive)
	}
	for rows := int64(0); at < end && rows <= last; {
		header, size, err := t.pageHeader(at, end)
		if err != nil {
			return err
		}
		at += size
		if err := t.checkPage(header, at, end, meta.Codec); err != nil {
			return err
		}
		at += int64(header.CompressedPageSize)
		rows += int64(header.DataPageHeader.V.NumValues) + int64(header.DataPageHeaderV2.V.NumValues)
	}
	return nil
}

// pageHeader reads the header of the page at an offset, and its length. Mostly it is short,
// but some writers put the smallest and the largest value into it.
func (t *table) pageHeader(at, end int64) (*format.PageHeader, int64, error) {
	for size := int64(1 << 10); ; size *= 16 {
		data := make([]byte, min(size, t.most, end-at))
		if _, err := t.read.ReadAt(data, at); err != nil {
			return nil, 0, parquetError(err)
		}
		reader := (&thrift.CompactProtocol{}).NewReaderFromBytes(data)
		header := &format.PageHeader{}
		err := thrift.NewDecoder(reader).Decode(header)
		switch n := int64(len(data)); {
		case err == nil:
			return header, int64(reader.BytesRead()), nil
		case !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF):
			return nil, 0, parquetError(err)
		case n == end-at:
			return nil, 0, fmt.Errorf("%w: the header of a page is cut off", ErrBadArchive)
		case n == t.most:
			return nil, 0, fmt.Errorf("%w: the header of a page has more than %d bytes", ErrTooLarge, t.most)
		}
	}
}

// checkPage holds one page, whose bytes begin at an offset, against the limits.
func (t *table) checkPage(h *format.PageHeader, at, end int64, codec format.CompressionCodec) error {
	packed, size := int64(h.CompressedPageSize), int64(h.UncompressedPageSize)
	v1, v2, dict := h.DataPageHeader.V, h.DataPageHeaderV2.V, h.DictionaryPageHeader.V
	switch {
	case packed < 0 || size < 0 || packed > end-at:
		return fmt.Errorf("%w: a page has %d bytes where there are %d", ErrBadArchive, packed, end-at)
	case packed > t.most || size > t.most:
		return fmt.Errorf("%w: a page has %d bytes, at most %d are read; write smaller row groups", ErrTooLarge, max(packed, size), t.most)
	case max(v1.NumValues, v2.NumValues, dict.NumValues) > maxPageValues:
		return fmt.Errorf("%w: a page claims more than %d values", ErrTooLarge, maxPageValues)
	case h.DataPageHeader.Valid && v1.Encoding == format.DeltaByteArray,
		h.DataPageHeaderV2.Valid && v2.Encoding == format.DeltaByteArray,
		h.DictionaryPageHeader.Valid && dict.Encoding == format.DeltaByteArray:
		return fmt.Errorf("%w: the encoding DELTA_BYTE_ARRAY is not read, since its size is not bounded", ErrBadArchive)
	}
	levels := int64(v2.RepetitionLevelsByteLength) + int64(v2.DefinitionLevelsByteLength)
	if h.DataPageHeaderV2.Valid && (v2.RepetitionLevelsByteLength < 0 || v2.DefinitionLevelsByteLength < 0 || levels > packed || levels > size) {
		return fmt.Errorf("%w: the levels of a page are longer than the page", ErrBadArchive)
	}
	if h.DataPageHeaderV2.Valid && v2.IsCompressed.Valid && !v2.IsCompressed.V {
		codec = format.Uncompressed
	}
	if codec == format.Uncompressed || packed == levels {
		return nil
	}
	data := make([]byte, packed-levels)
	if _, err := t.read.ReadAt(data, at+levels); err != nil {
		return parquetError(err)
	}
	return checkPacked(data, size-levels, codec)
}

// checkPacked makes sure that packed bytes unpack to no more than size bytes.
func checkPacked(data []byte, size int64, codec format.CompressionCodec) error {
	got := int64(0)
	var err error
	switch codec {
	case format.Snappy:
		var n int
		n, err = snappy.DecodedLen(data)
		got = int64(n)
	case format.Gzip:
		var r *gzip.Reader
		if r, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
			got, err = io.Copy(io.Discard, io.LimitReader(r, size+1))
		}
	case format.Zstd:
		var r *zstd.Decoder
		r, err = zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
		if err == nil {
			defer r.Close()
			got, err = io.Copy(io.Discard, io.LimitReader(r, size+1))
		}
	default:
		return fmt.Errorf("%w: pages packed with %s are not read; write them with snappy, gzip, zstd or unpacked", ErrBadArchive, codec)
	}
	if err != nil {
		return parquetError(err)
	}
	if got > size {
		return fmt.Errorf("%w: a page unpacks to more than the %d bytes that it claims", ErrBadArchive, size)
	}
	return nil
}

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

// maxPageValues limits the values of a page, since a few bytes can claim any number.
const maxPageValues = 1 << 24

// guardPages checks the pages of a column chunk up to the page of row last, counted from the beginning of the chunk,
// before any page is decoded. It refuses pages whose compressed or actual decompressed size exceeds maxBytes, and
// encodings of unbounded size.
func (t *table) guardPages(meta *format.ColumnMetaData, last int64) error {
	at := meta.DataPageOffset
	if d := meta.DictionaryPageOffset; d > 0 && d < at {
		at = d
	}
	end := at + meta.TotalCompressedSize
	if at < 0 || end < at || end > t.file.Size() {
		return fmt.Errorf("%w: column is outside of the file", ErrBadArchive)
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

// pageHeader reads the header of the page at an offset and returns its length. Some headers are long, since they
// contain the minimum and the maximum value.
func (t *table) pageHeader(at, end int64) (*format.PageHeader, int64, error) {
	for size := int64(1 << 10); ; size *= 16 {
		data := make([]byte, min(size, t.maxBytes, end-at))
		if _, err := t.read.ReadAt(data, at); err != nil {
			return nil, 0, parquetError(err)
		}
		reader := (&thrift.CompactProtocol{}).NewReaderFromBytes(data)
		header := &format.PageHeader{}
		err := checkThrift(data)
		if err == nil {
			err = thrift.NewDecoder(reader).Decode(header)
		}
		switch n := int64(len(data)); {
		case err == nil:
			return header, int64(reader.BytesRead()), nil
		case !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF):
			return nil, 0, parquetError(err)
		case n == end-at:
			return nil, 0, fmt.Errorf("%w: header of a page is truncated", ErrBadArchive)
		case n == t.maxBytes:
			return nil, 0, fmt.Errorf("%w: header of a page exceeds %d bytes", ErrTooLarge, t.maxBytes)
		}
	}
}

func (t *table) checkPage(h *format.PageHeader, at, end int64, codec format.CompressionCodec) error {
	compressed, size := int64(h.CompressedPageSize), int64(h.UncompressedPageSize)
	v1, v2, dict := h.DataPageHeader.V, h.DataPageHeaderV2.V, h.DictionaryPageHeader.V
	switch {
	case compressed < 0 || size < 0 || compressed > end-at:
		return fmt.Errorf("%w: page claims %d of %d bytes", ErrBadArchive, compressed, end-at)
	case compressed > t.maxBytes || size > t.maxBytes:
		return fmt.Errorf("%w: page has %d bytes, at most %d are allowed; write smaller row groups", ErrTooLarge, max(compressed, size), t.maxBytes)
	case max(v1.NumValues, v2.NumValues, dict.NumValues) > maxPageValues:
		return fmt.Errorf("%w: page claims more than %d values", ErrTooLarge, maxPageValues)
	case h.DataPageHeader.Valid && v1.Encoding == format.DeltaByteArray,
		h.DataPageHeaderV2.Valid && v2.Encoding == format.DeltaByteArray,
		h.DictionaryPageHeader.Valid && dict.Encoding == format.DeltaByteArray:
		return fmt.Errorf("%w: encoding DELTA_BYTE_ARRAY is not supported, since its size is unbounded", ErrBadArchive)
	}
	levels := int64(v2.RepetitionLevelsByteLength) + int64(v2.DefinitionLevelsByteLength)
	if h.DataPageHeaderV2.Valid && (v2.RepetitionLevelsByteLength < 0 || v2.DefinitionLevelsByteLength < 0 || levels > compressed || levels > size) {
		return fmt.Errorf("%w: levels of a page exceed the page", ErrBadArchive)
	}
	if h.DataPageHeaderV2.Valid && v2.IsCompressed.Valid && !v2.IsCompressed.V {
		codec = format.Uncompressed
	}
	if codec == format.Uncompressed || compressed == levels {
		return nil
	}
	data := make([]byte, compressed-levels)
	if _, err := t.read.ReadAt(data, at+levels); err != nil {
		return parquetError(err)
	}
	return checkDecompressed(data, size-levels, codec)
}

// checkDecompressed checks that data decompresses to at most size bytes.
func checkDecompressed(data []byte, size int64, codec format.CompressionCodec) error {
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
		return fmt.Errorf("%w: compression %s is not supported; write the file again with snappy, gzip, zstd or none", ErrBadArchive, codec)
	}
	if err != nil {
		return parquetError(err)
	}
	if got > size {
		return fmt.Errorf("%w: page decompresses to more than the claimed %d bytes", ErrBadArchive, size)
	}
	return nil
}

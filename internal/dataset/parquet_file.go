package dataset

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"ddiff/storage"
)

const (
	// maxFooter limits the size of the footer of a Parquet file.
	maxFooter = 64 << 20
	// bytesLeaf and pathLeaf are the members of a column of files with names in the format of the Hugging Face
	// libraries.
	bytesLeaf = "bytes"
	pathLeaf  = "path"
)

type table struct {
	file *parquet.File
	read io.ReaderAt
	// maxBytes limits the size of a page or a cell.
	maxBytes int64
	rows     int64
}

// openTable reads the footer of a Parquet file. It returns panics of the library as errors.
func openTable(ctx context.Context, obj object, maxBytes int64) (t *table, err error) {
	defer recoverPanic(&err)
	read := newBlocks(ctx, obj)
	if err := checkFooter(read, obj.length()); err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(read, obj.length(),
		parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(64<<10))
	if err != nil {
		return nil, parquetError(err)
	}
	t = &table{file: file, read: read, maxBytes: maxBytes}
	for i, group := range file.RowGroups() {
		n := group.NumRows()
		// A sensible file has at least one byte per row. The check bounds the rows of a small file. OpenFile refuses negative numbers.
		if n > obj.length() || t.rows+n > obj.length() {
			return nil, fmt.Errorf("%w: row group %d claims %d rows in a file of %d bytes", ErrBadArchive, i, n, obj.length())
		}
		t.rows += n
	}
	return t, nil
}

// checkFooter refuses other files, and footers that the library must not decode, see checkThrift.
func checkFooter(r io.ReaderAt, size int64) error {
	const magic = "PAR1"
	var tail [8]byte
	if size < int64(len(tail)+len(magic)) {
		return fmt.Errorf("%w: too short for a Parquet file", ErrBadArchive)
	}
	if _, err := r.ReadAt(tail[:], size-int64(len(tail))); err != nil {
		return err
	}
	size -= int64(len(tail))
	length := int64(binary.LittleEndian.Uint32(tail[:4]))
	switch {
	case string(tail[4:]) == "PARE":
		return fmt.Errorf("%w: file is encrypted", ErrBadArchive)
	case string(tail[4:]) != magic:
		return fmt.Errorf("%w: not a Parquet file, or truncated", ErrBadArchive)
	case length > maxFooter || length > size:
		return fmt.Errorf("%w: footer claims %d bytes", ErrBadArchive, length)
	}
	footer := make([]byte, length)
	if _, err := r.ReadAt(footer, size-length); err != nil {
		return err
	}
	if err := checkThrift(footer); err != nil {
		return parquetError(fmt.Errorf("footer: %w", err))
	}
	return nil
}

// parquetError wraps errors of damaged files with ErrBadArchive and returns read errors unchanged.
func parquetError(err error) error {
	for _, sentinel := range []error{
		ErrUnavailable, ErrChanged, ErrRefused, ErrDenied, ErrNotFound, ErrBadArchive, ErrTooLarge,
		storage.ErrUnavailable, storage.ErrAccess, storage.ErrCertificate, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, sentinel) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrBadArchive, err)
}

// recoverPanic turns a panic about a damaged file into an error.
func recoverPanic(err *error) {
	switch p := recover().(type) {
	case nil:
	case error:
		*err = parquetError(fmt.Errorf("file is damaged: %w", p))
	default:
		*err = fmt.Errorf("%w: file is damaged: %v", ErrBadArchive, p)
	}
}

// leaf is a column with one value per row.
type leaf struct {
	name   string // the path with dots
	column *parquet.Column
}

// leaves returns the columns with one value per row, named COLUMN or GROUP.MEMBER.
func (t *table) leaves() []leaf {
	var out []leaf
	var walk func(c *parquet.Column)
	walk = func(c *parquet.Column) {
		for _, child := range c.Columns() {
			switch {
			case !child.Leaf():
				walk(child)
			case child.MaxRepetitionLevel() == 0:
				out = append(out, leaf{strings.Join(child.Path(), "."), child})
			}
		}
	}
	walk(t.file.Root())
	return out
}

func (t *table) find(name string) (leaf, bool) {
	for _, l := range t.leaves() {
		if l.name == name {
			return l, true
		}
	}
	return leaf{}, false
}

// logical returns the logical type of a leaf's values, nil without one.
func (l leaf) logical() any {
	if kind := l.column.Type().LogicalType(); kind != nil {
		return kind.Value
	}
	return nil
}

// bytes reports whether a leaf contains values of variable length that are not text.
func (l leaf) bytes() bool {
	_, text := l.logical().(*format.StringType)
	return l.column.Type().Kind() == parquet.ByteArray && !text
}

// numeric reports whether a leaf contains numbers; unsigned reports whether they are unsigned.
func (l leaf) numeric() bool {
	switch l.column.Type().Kind() {
	case parquet.Int32, parquet.Int64, parquet.Float, parquet.Double:
		_, integer := l.logical().(*format.IntType)
		return integer || l.column.Type().LogicalType() == nil
	}
	return false
}

func (l leaf) unsigned() bool {
	i, ok := l.logical().(*format.IntType)
	return ok && !i.IsSigned
}

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
)

const (
	// maxFooter is the largest description of a Parquet file that is read.
	maxFooter = 64 << 20
	// bytesLeaf and pathLeaf are the parts of a column that holds files with their names, as
	// the Hugging Face libraries write them.
	bytesLeaf = "bytes"
	pathLeaf  = "path"
)

// table is an open Parquet file.
type table struct {
	file *parquet.File
	read io.ReaderAt
	most int64 // bytes of a page or a cell
	rows int64
}

// openTable reads the description of a Parquet file. Errors that the reader reports by a panic
// come back as errors.
func openTable(ctx context.Context, obj object, most int64) (t *table, err error) {
	defer recovered(&err)
	read := newBlocks(ctx, obj)
	if err := checkFooter(read, obj.length()); err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(read, obj.length(),
		parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(64<<10))
	if err != nil {
		return nil, parquetError(err)
	}
	t = &table{file: file, read: read, most: most}
	for i, group := range file.RowGroups() {
		n := group.NumRows()
		// A cell takes a byte or more in any sensible file; a few bytes must not become
		// endless rows.
		if n < 0 || n > obj.length() || t.rows+n > obj.length() {
			return nil, fmt.Errorf("%w: row group %d claims %d rows in a file of %d bytes", ErrBadArchive, i, n, obj.length())
		}
		t.rows += n
	}
	return t, nil
}

// checkFooter refuses what is no Parquet file before anything is allocated.
func checkFooter(r io.ReaderAt, size int64) error {
	const magic = "PAR1"
	var tail [8]byte
	if size < int64(len(tail)+len(magic)) {
		return fmt.Errorf("%w: it is too short for a Parquet file", ErrBadArchive)
	}
	if _, err := r.ReadAt(tail[:], size-int64(len(tail))); err != nil {
		return err
	}
	footer := int64(binary.LittleEndian.Uint32(tail[:4]))
	switch {
	case string(tail[4:]) == "PARE":
		return fmt.Errorf("%w: it is encrypted", ErrBadArchive)
	case string(tail[4:]) != magic:
		return fmt.Errorf("%w: it is no Parquet file, or was cut off", ErrBadArchive)
	case footer > maxFooter || footer > size-int64(len(tail)):
		return fmt.Errorf("%w: its description claims %d bytes", ErrBadArchive, footer)
	}
	return nil
}

// parquetError tells a damaged file from one that could not be read.
func parquetError(err error) error {
	for _, passing := range []error{
		ErrUnavailable, ErrChanged, ErrRefused, ErrDenied, ErrNotFound, ErrBadArchive, ErrTooLarge,
		context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, passing) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrBadArchive, err)
}

// recovered turns a panic over a damaged file into an error.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: the file is damaged: %v", ErrBadArchive, p)
	}
}

// leaf is a column of values, one for each row.
type leaf struct {
	name   string // the path with dots
	column *parquet.Column
}

// leaves are the columns with one value per row, by the names that Columns may use: that of a
// column, or GROUP.MEMBER.
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

// find returns the leaf of a name.
func (t *table) find(name string) (leaf, bool) {
	for _, l := range t.leaves() {
		if l.name == name {
			return l, true
		}
	}
	return leaf{}, false
}

// text tells whether a leaf holds text, bytes whether it holds anything else of varying length.
func (l leaf) text() bool {
	kind := l.column.Type().LogicalType()
	if kind == nil {
		return false
	}
	_, isText := kind.Value.(*format.StringType)
	return isText
}

func (l leaf) bytes() bool { return l.column.Type().Kind() == parquet.ByteArray && !l.text() }

// numeric tells whether a leaf holds numbers, unsigned whether they have no sign.
func (l leaf) numeric() bool {
	switch l.column.Type().Kind() {
	case parquet.Int32, parquet.Int64, parquet.Float, parquet.Double:
		kind := l.column.Type().LogicalType()
		if kind == nil {
			return true
		}
		_, isInt := kind.Value.(*format.IntType)
		return isInt
	}
	return false
}

func (l leaf) unsigned() bool {
	kind := l.column.Type().LogicalType()
	if kind == nil {
		return false
	}
	i, ok := kind.Value.(*format.IntType)
	return ok && !i.IsSigned
}

package dataset

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// values iterates over the values of a column chunk with one page in memory.
type values struct {
	reader parquet.ColumnChunkValueReader
	batch  [64]parquet.Value
	have   []parquet.Value
}

// chunk returns the column chunk of a leaf in row group i, and its metadata.
func (t *table) chunk(i int, l leaf) (parquet.ColumnChunk, *format.ColumnMetaData, error) {
	chunks, described := t.file.RowGroups()[i].ColumnChunks(), t.file.Metadata().RowGroups[i].Columns
	j := l.column.Index()
	if j < 0 || j >= len(chunks) { // as many as described
		return nil, nil, fmt.Errorf("%w: row group %d lacks column %q", ErrBadArchive, i, l.name)
	}
	return chunks[j], &described[j].MetaData, nil
}

// values opens a leaf of row group i at a row.
func (t *table) values(i int, l leaf, row int64) (v *values, err error) {
	defer recoverPanic(&err)
	chunk, meta, err := t.chunk(i, l)
	if err != nil {
		return nil, err
	}
	last := row
	if row == 0 {
		last = math.MaxInt64
	}
	if err := t.guardPages(meta, last); err != nil {
		return nil, err
	}
	v = &values{reader: parquet.NewColumnChunkValueReader(chunk)}
	if row > 0 {
		if err := v.reader.SeekToRow(row); err != nil {
			v.close()
			return nil, parquetError(err)
		}
	}
	return v, nil
}

// next returns the value of the next row, which is valid until the following call.
func (v *values) next() (out parquet.Value, err error) {
	defer recoverPanic(&err)
	if len(v.have) == 0 {
		n, err := v.reader.ReadValues(v.batch[:])
		if errors.Is(err, io.EOF) && n == 0 {
			return out, fmt.Errorf("%w: column has fewer values than the row group has rows", ErrBadArchive)
		}
		if n == 0 {
			return out, parquetError(err)
		}
		v.have = v.batch[:n]
	}
	out, v.have = v.have[0], v.have[1:]
	return out, nil
}

func (v *values) close() {
	v.reader.Close() // opened for reading
}

// format returns a value as text, empty for null.
func (l leaf) format(v parquet.Value) (string, error) {
	switch {
	case v.IsNull():
		return "", nil
	case v.Kind() == parquet.ByteArray:
		return strings.Clone(string(v.ByteArray())), nil
	case !l.numeric():
		return "", fmt.Errorf("contains %s, want text or numbers", l.column.Type())
	}
	switch {
	case l.unsigned() && v.Kind() == parquet.Int32:
		return strconv.FormatUint(uint64(v.Uint32()), 10), nil
	case l.unsigned() && v.Kind() == parquet.Int64:
		return strconv.FormatUint(v.Uint64(), 10), nil
	}
	return v.String(), nil
}

package dataset

import (
	"bytes"
	"context"
	"fmt"
)

// readCell reads one cell of a Parquet file. It reads the pages of the row group up to the cell, since most files do
// not state the offsets of rows.
func (s *Sources) readCell(ctx context.Context, a Address, check Check) ([]byte, error) {
	obj, err := s.open(ctx, a)
	if err != nil {
		return nil, err
	}
	defer obj.close() //nolint:errcheck // opened for reading
	t, err := openTable(ctx, obj, s.cfg.MaxBytes)
	if err != nil {
		return nil, err
	}
	l, ok := t.find(a.column)
	if !ok || !l.bytes() {
		return nil, fmt.Errorf("%w: no column %q of bytes", ErrNotFound, a.column)
	}
	row := a.row
	for i, group := range t.file.RowGroups() {
		if row >= group.NumRows() {
			row -= group.NumRows()
			continue
		}
		return s.cell(t, i, l, row, check)
	}
	return nil, fmt.Errorf("%w: file has %d rows", ErrNotFound, t.rows)
}

func (s *Sources) cell(t *table, i int, l leaf, row int64, check Check) ([]byte, error) {
	v, err := t.values(i, l, row)
	if err != nil {
		return nil, err
	}
	defer v.close()
	value, err := v.next()
	switch {
	case err != nil:
		return nil, err
	case value.IsNull():
		return nil, fmt.Errorf("%w: cell is empty", ErrNotFound)
	case int64(len(value.ByteArray())) > s.cfg.MaxBytes:
		return nil, s.tooLarge(int64(len(value.ByteArray())))
	}
	if err := check(beginningOf(value.ByteArray()), int64(len(value.ByteArray()))); err != nil {
		return nil, err
	}
	return bytes.Clone(value.ByteArray()), nil
}

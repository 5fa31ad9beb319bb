package manifest

import (
	"context"
	"errors"
	"iter"
)

// Number sets Index, makes names unique, and ends after limit rows, unless limit is 0. An error of the
// rows or of ctx is the last pair.
//
// A repeated name gets a number: -2, -3 and so on. From row 65,536 on earlier names are no longer
// stored, and every name ends in the row's index. Distinct asserts that the names are unique; then they
// stay unchanged, except for unprintable characters.
func Number(ctx context.Context, rows iter.Seq2[Row, error], limit int, distinct bool) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		s := &stream{ctx: ctx, limit: limit, yield: yield, names: namer{}}
		for row, err := range rows {
			if err == nil {
				err = s.add(row, distinct)
			}
			if errors.Is(err, errStop) {
				return
			}
			if err != nil {
				yield(Row{}, err)
				return
			}
		}
	}
}

// emit yields one row. Its error ends the stream.
func (s *stream) emit(r Row) error { return s.add(r, false) }

// add yields one row. Distinct asserts that its name is unique in the dataset.
func (s *stream) add(r Row, distinct bool) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	r.Index = s.rows
	switch {
	case s.rows < namesKept:
		r.Name = s.names.unique(r.Name)
	case !distinct || r.Name != printable(r.Name):
		r.Name = s.names.numbered(r.Name, s.rows)
	}
	s.rows++
	if !s.yield(r, nil) || s.rows == s.limit {
		return errStop
	}
	return nil
}

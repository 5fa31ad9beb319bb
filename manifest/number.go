package manifest

import (
	"context"
	"errors"
	"iter"
)

// Number makes rows of any origin those of a dataset: it sets Index, makes the names unique,
// and ends after limit rows, unless limit is 0. An error among the rows is the last pair, and
// so is that of ctx when it ends.
//
// A name that the dataset has already gets a number: -2, -3 and so on. From row 65,536 on the
// earlier names are no longer known, and every name ends in the row's index. Distinct says
// that the origin has no name twice; then names stay as they are, unless they hold characters
// that cannot be shown.
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

// emit hands out one row. Its error ends the stream.
func (s *stream) emit(r Row) error { return s.add(r, false) }

// add hands out one row. Distinct says that no other row of the dataset has its name.
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

package shard

import (
	"context"
	"fmt"

	"ddiff/manifest"
)

// Again reads the rows of a window again. Rows that were repaired get items. The dataset's rows that were appended since are left out; the last
// window's Next is at. It returns ErrMoved if the dataset now has fewer rows, or other rows at the place of the window, and the error of a source
// that does not answer.
func (s *Sharder) Again(ctx context.Context, old *Window, at Position) (*Window, error) {
	first := old.Listed - old.Rows
	later, err := s.later(ctx, old.Append, at)
	if err != nil {
		return nil, err
	}
	var rows []manifest.Row
	seen := 0
	for row, err := range s.rows(ctx, old.Append, nil) {
		if err != nil {
			return nil, err // Rows adds action and path
		}
		if later(row) {
			continue
		}
		if seen++; seen <= first {
			continue
		}
		if rows = append(rows, row); len(rows) == old.Rows {
			break
		}
	}
	if len(rows) != old.Rows {
		return nil, fmt.Errorf("%w: it has %d rows, it had %d; submit it as a new campaign", ErrMoved, seen, first+old.Rows)
	}
	w, err := s.window(ctx, Position{Number: old.Number, Row: old.Row, Item: old.Item}, rows, fail)
	if err != nil {
		return nil, err
	}
	if got := len(w.Items) + len(w.Failed); got != old.Header.Items {
		return nil, fmt.Errorf("%w: rows %d to %d have %d items, they had %d; submit it as a new campaign",
			ErrMoved, first+1, first+old.Rows, got, old.Header.Items)
	}
	if err := samePlace(old, w, first); err != nil {
		return nil, err
	}
	w.Header = old.Header
	return w, nil
}

// samePlace compares the files of the rows of two windows. Files of a row that has failed may differ, because a list can
// be repaired, unless they are the files of another row of the window.
func samePlace(old, fresh *Window, first int) error {
	before, after := old.rowKeys(old.Rows), fresh.rowKeys(old.Rows)
	failed := map[filesKey]bool{}
	for _, f := range old.Failed {
		failed[keyOfItem(f.Item)] = true
	}
	known := map[filesKey]bool{}
	for _, k := range before {
		known[k] = true
	}
	for i, k := range before {
		if i >= len(after) || after[i] != k && (!failed[k] || known[after[i]]) {
			return fmt.Errorf("%w: row %d has other files; submit it as a new campaign", ErrMoved, first+i+1)
		}
	}
	return nil
}

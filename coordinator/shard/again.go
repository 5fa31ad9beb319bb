package shard

import (
	"context"
	"fmt"

	"ddiff/manifest"
)

// Again reads the rows of a window again. Rows that were repaired get items. It returns ErrMoved if the dataset now has
// fewer rows, or other rows at the place of the window, and the error of a source that does not answer.
func (s *Sharder) Again(ctx context.Context, old *Window) (*Window, error) {
	first := old.Listed - old.Rows
	var rows []manifest.Row
	seen := 0
	for row, err := range s.cfg.Rows(ctx, s.cfg.Spec.Dataset, nil) {
		if err != nil {
			return nil, err // Rows adds action and path
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
	if err := samePlace(old, w); err != nil {
		return nil, err
	}
	w.Header = old.Header
	return w, nil
}

// samePlace compares the files of the items of two windows. Files of an item that has failed may differ, because a list can
// be repaired, unless they are the files of another row of the window.
func samePlace(old, fresh *Window) error {
	after := map[int]files{} // by index in the manifest
	for _, it := range fresh.Items {
		after[it.Index] = filesOf(it)
	}
	for _, f := range fresh.Failed {
		after[f.Item.Index] = filesOf(f.Item)
	}
	known := map[files]bool{}
	for _, it := range old.Items {
		known[filesOf(it)] = true
	}
	for _, f := range old.Failed {
		known[filesOf(f.Item)] = true
	}
	for _, it := range old.Items {
		if after[it.Index] != filesOf(it) {
			return fmt.Errorf("%w: row %q has other files; submit it as a new campaign", ErrMoved, it.Name)
		}
	}
	for _, f := range old.Failed {
		if now := after[f.Item.Index]; now != filesOf(f.Item) && known[now] {
			return fmt.Errorf("%w: row %q has the files of another row; submit it as a new campaign", ErrMoved, f.Item.Name)
		}
	}
	return nil
}

// files identifies the row of an item: by its files, or without files by its name.
type files struct{ name, image, measurement, mask, kernel string }

func filesOf(it manifest.Item) files {
	path := func(s *manifest.Source) string {
		if s == nil {
			return ""
		}
		return s.Path
	}
	f := files{image: path(it.Image), measurement: path(it.Measurement)}
	if !it.FromTask {
		f.mask, f.kernel = path(it.Mask), path(it.Kernel)
	}
	if f == (files{}) {
		f.name = it.Name
	}
	return f
}

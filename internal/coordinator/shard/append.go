package shard

import (
	"context"
	"errors"
	"iter"
	"maps"
	"math"
	"time"

	"ddiff/manifest"
	"ddiff/restore/item"
)

// Appended describes rows that were added to a campaign after its dataset had been read. The zero value is the dataset as it was submitted.
type Appended struct {
	// First is the number of the first window with the rows, at least 1.
	First int `json:"first,omitempty"`
	// Path is the dataset of the rows. Empty: that of the campaign, without the rows of the windows before First.
	Path string `json:"path,omitempty"`
	// Command is the id of the command that added them.
	Command string `json:"command,omitempty"`
}

// Append makes the first window of the rows that a command adds after the last window, whose Next is at. Without new items it is the last
// window and has none, and need not be stored. Windows makes the others, if the window is not the last. Any error ends it: nothing is waited for.
func (s *Sharder) Append(ctx context.Context, at Position, path, command string) (w *Window, err error) {
	at.Append = Appended{First: at.Number, Path: path, Command: command}
	at.Listed, at.RowsSHA256, at.tail = 0, "", ""
	p := pass{Sharder: s, at: at, wait: fail, yield: func(made *Window) bool { w = made; return false }}
	if err := p.run(ctx); err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	return w, nil
}

// rows streams the rows of a part of the dataset from its beginning.
func (s *Sharder) rows(ctx context.Context, part Appended, skipped func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
	d := s.cfg.Spec.Dataset
	if part.Path != "" {
		d.Path = part.Path
	}
	all := s.cfg.Rows(ctx, d, skipped)
	if part.First == 0 || part.Path != "" {
		return all
	}
	return func(yield func(manifest.Row, error) bool) {
		known, err := s.before(ctx, part.First)
		if err != nil {
			yield(manifest.Row{}, err)
			return
		}
		left := map[filesKey]int{}
		for k, rows := range known {
			left[k] = rows.count
		}
		s.touched = nil
		for row, err := range all {
			if err == nil && manifest.ItemsPerRow(row, s.cfg.Spec) == 0 { // no window names its files
				continue
			}
			if err == nil && left[keyOfRow(row)] > 0 { // a list may have several rows with the same files
				left[keyOfRow(row)]--
				if t, ok := touched(row, known[keyOfRow(row)]); ok {
					s.touched = append(s.touched, t)
				}
				continue
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// knownRows are the rows of stored windows with the same files: their number, the last window, and when it was read.
type knownRows struct {
	count, window int
	read          time.Time
}

// Touched returns the rows that Append has found in the dataset, that a stored window has, and whose files were modified since.
func (s *Sharder) Touched() []Touched { return s.touched }

// Of reports whether an item is one of the row.
func (t Touched) Of(it item.Item) bool { return keyOfItem(it) == t.key }

// before counts the rows of the windows before a number by their files.
func (s *Sharder) before(ctx context.Context, number int) (map[filesKey]knownRows, error) {
	if s.known != nil && s.knownBefore == number {
		return s.known, nil
	}
	known := map[filesKey]knownRows{}
	for w, err := range s.cfg.Stored(ctx) {
		if err != nil {
			return nil, err
		}
		if w.Number >= number {
			break
		}
		for _, k := range w.rowKeys(math.MaxInt) {
			known[k] = knownRows{known[k].count + 1, w.Number, w.Read}
		}
	}
	s.known, s.knownBefore = known, number
	return known, nil
}

// counted are the rows of a part of the dataset, and those that were appended to it since, by their files, in the stored windows before a number.
type counted struct {
	part          Appended
	before        int
	own, appended map[filesKey]int
}

// later returns a function that reports whether the next row of a part was appended since. The last window's Next is at. Of several rows with the same
// files the first are those of the part.
func (s *Sharder) later(ctx context.Context, part Appended, at Position) (func(row manifest.Row) bool, error) {
	if part.Path != "" || at.Append.First <= part.First {
		return func(manifest.Row) bool { return false }, nil
	}
	if s.counted.part != part || s.counted.before != at.Number {
		if err := s.count(ctx, part, at.Number); err != nil {
			return nil, err
		}
	}
	own, appended := maps.Clone(s.counted.own), maps.Clone(s.counted.appended)
	return func(row manifest.Row) bool {
		k := keyOfRow(row)
		switch {
		case manifest.ItemsPerRow(row, s.cfg.Spec) == 0: // no window names its files
		case own[k] > 0:
			own[k]--
		case appended[k] > 0:
			appended[k]--
			return true
		}
		return false
	}, nil
}

// count counts the rows for later: a retry makes many windows of a part again.
func (s *Sharder) count(ctx context.Context, part Appended, before int) error {
	own, appended := map[filesKey]int{}, map[filesKey]int{}
	for w, err := range s.cfg.Stored(ctx) {
		if err != nil {
			return err
		}
		rows := own
		switch {
		case w.Append.First > part.First && w.Append.Path == "":
			rows = appended
		case w.Append.First != part.First:
			continue
		}
		for _, k := range w.rowKeys(math.MaxInt) {
			rows[k]++
		}
	}
	s.counted = counted{part, before, own, appended}
	return nil
}

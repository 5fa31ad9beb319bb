package entry

import (
	"iter"
	"slices"

	"ddiff/coordinator/report/selection"
	"ddiff/coordinator/report/sweep"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// Set has the entries of results in the order of [CompareEntries], with the chosen versions of their scores, and their groups.
type Set struct {
	Columns *Columns
	// Rule combined the runs of each measurement.
	Rule    selection.Rule
	Entries []*Entry
	// Groups has one group for each row of the table.
	Groups []*Group
}

// Collect sorts and groups results. It leaves out metrics with several versions on request, and returns an error that wraps
// [result.ErrVersions] otherwise. An empty rule means first; the error of another one wraps [selection.ErrUnknownRule].
func Collect(results iter.Seq2[item.Result, error], tasks operator.Set, rule selection.Rule, leaveOut bool) (*Set, error) {
	rule, err := selection.Parse(rule)
	if err != nil {
		return nil, err
	}
	s := &Set{Rule: rule, Columns: newColumns(leaveOut)}
	known := tasks.Names()
	for r, err := range results {
		if err != nil {
			return nil, err
		}
		e, err := newEntry(&r)
		if err != nil {
			return nil, err
		}
		if e.TaskRank = slices.Index(known, e.Task); e.TaskRank < 0 {
			e.TaskRank = len(known) // others follow, by name
		}
		s.Columns.add(e, &r)
		s.Entries = append(s.Entries, e)
	}
	if err := s.Columns.choose(); err != nil {
		return nil, err
	}
	for _, e := range s.Entries {
		s.Columns.apply(e)
	}
	divideTiles(s.Entries)
	slices.SortFunc(s.Entries, CompareEntries)
	s.Groups = groups(s.Entries, rule)
	return s, nil
}

// divideTiles gives images that keep their sizes rows by tiles, where one campaign cannot have restored all of a row: tiles differ, or an image
// without tiles is larger than those of the others.
func divideTiles(entries []*Entry) {
	type mixture struct {
		tiles map[string]bool
		whole int // the largest side without tiles
	}
	rows := make(map[sweep.Cell]*mixture)
	for _, e := range entries {
		m := rows[e.Cell()]
		if m == nil {
			m = &mixture{tiles: make(map[string]bool)}
			rows[e.Cell()] = m
		}
		if e.Tile > 0 {
			m.tiles[e.Tiles] = true
		} else {
			m.whole = max(m.whole, e.Width, e.Height)
		}
	}
	for _, e := range entries {
		if m := rows[e.Cell()]; e.Fit == string(item.FitPad) && e.Tile > 0 && (len(m.tiles) > 1 || m.whole > e.Tile) {
			e.Settings += ";" + e.Tiles
		}
	}
}

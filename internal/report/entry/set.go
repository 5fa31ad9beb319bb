package entry

import (
	"iter"
	"slices"

	"ddiff/internal/report/selection"
	"ddiff/internal/report/sweep"
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

	cells shared[sweep.Cell]
	hows  shared[How]
}

// Collect sorts and groups results. It leaves out metrics with several versions on request, and returns an error that wraps
// [result.ErrVersions] otherwise. An empty rule means first; the error of another one wraps [selection.ErrUnknownRule].
func Collect(results iter.Seq2[item.Result, error], tasks operator.Set, rule selection.Rule, leaveOut bool) (*Set, error) {
	rule, err := selection.Parse(rule)
	if err != nil {
		return nil, err
	}
	s := &Set{Rule: rule, Columns: newColumns(leaveOut), cells: make(shared[sweep.Cell]), hows: make(shared[How])}
	known := tasks.Names()
	for r, err := range results {
		if err != nil {
			return nil, err
		}
		rank := slices.Index(known, r.Item.Task)
		if rank < 0 {
			rank = len(known) // others follow, by name
		}
		e, err := s.newEntry(&r, rank)
		if err != nil {
			return nil, err
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
	s.divideTiles()
	s.divideFiles()
	slices.SortFunc(s.Entries, CompareEntries)
	s.Groups = groups(s.Entries, rule)
	return s, nil
}

// divideTiles gives images that keep their sizes rows by tiles, where one campaign cannot have restored all of a row: tiles differ, or an image
// without tiles is larger than those of the others.
func (s *Set) divideTiles() {
	type mixture struct {
		tiles map[string]bool
		whole int // the largest side without tiles
	}
	rows := make(map[*sweep.Cell]*mixture)
	for _, e := range s.Entries {
		m := rows[e.Cell]
		if m == nil {
			m = &mixture{tiles: make(map[string]bool)}
			rows[e.Cell] = m
		}
		if e.Tile > 0 {
			m.tiles[e.Tiles] = true
		} else {
			m.whole = max(m.whole, e.Width, e.Height)
		}
	}
	for _, e := range s.Entries {
		if m := rows[e.Cell]; e.Fit == string(item.FitPad) && e.Tile > 0 && (len(m.tiles) > 1 || m.whole > e.Tile) {
			c := *e.Cell
			c.Settings += ";" + e.Tiles
			e.Cell = s.cells.of(c)
		}
	}
}

// divideFiles gives the masks and kernels of a problem rows of their own if they are several and one image was measured with all of them. Others are
// those of a list, of which each belongs to an image.
func (s *Set) divideFiles() {
	files := make(map[sweep.Problem]map[string]bool)
	for _, e := range s.Entries {
		if files[e.Problem] == nil {
			files[e.Problem] = make(map[string]bool)
		}
		files[e.Problem][e.Given] = true
	}
	type place struct {
		sweep.Problem
		image uint64
	}
	ofImage, divided := make(map[place]map[string]bool), make(map[sweep.Problem]bool)
	for _, e := range s.Entries {
		if len(files[e.Problem]) == 1 {
			continue
		}
		at := place{e.Problem, e.Image}
		if ofImage[at] == nil {
			ofImage[at] = make(map[string]bool)
		}
		ofImage[at][e.Given] = true
		divided[e.Problem] = divided[e.Problem] || len(ofImage[at]) == len(files[e.Problem])
	}
	for _, e := range s.Entries {
		if divided[e.Problem] {
			c := *e.Cell
			c.Params = sweep.Join(e.Params, e.Given)
			e.Cell = s.cells.of(c)
		}
	}
}

package shard

import "ddiff/manifest"

// anchor searches a dataset that has changed for the last row that the campaign has read. Its input is each row of the
// dataset in order.
//
// The anchor is the row of the dataset whose key has the highest index in the tail. Rows of the tail may be missing, and other
// rows may be between them. If rows of the tail are in another order, or several rows have the key of one, the dataset has no
// anchor: rows before and after any place may be read already or not.
type anchor struct {
	index  map[filesKey]int // in the tail
	listed int              // number of rows so far
	moved  bool             // a row of the tail came after a later one, or twice

	best int    // highest index in the tail so far, -1 without one
	at   int    // number of rows up to that row
	name string // of that row
}

func newAnchor(t tail) *anchor {
	a := &anchor{index: map[filesKey]int{}, best: -1}
	for i := range t.len() {
		a.index[t.key(i)] = i
	}
	return a
}

// add reports whether the row is the best one so far.
func (a *anchor) add(row manifest.Row) bool {
	a.listed++
	i, ok := a.index[keyOfRow(row)]
	if !ok {
		return false
	}
	if i <= a.best {
		a.moved = true
		return false
	}
	a.best, a.at, a.name = i, a.listed, row.Name
	return true
}

// found reports whether the dataset has an anchor.
func (a *anchor) found() bool { return a.best >= 0 && !a.moved }

package shard

import "ddiff/manifest"

// anchor searches a dataset that has changed for the last row that the campaign has read. Its input is each row of the
// dataset in order.
//
// The anchor is the row of the dataset whose key has the highest index in the tail. Among rows with equal keys it is
// the row that is equal to the last row read, settings included, then the first row with the most rows of the tail before it in
// their order. Rows of the tail may be missing, and other rows may be between them. If a row of the tail is out of order, the dataset was reordered and
// has no anchor: rows before and after any place may be read already or not.
type anchor struct {
	tail  tail
	index map[filesKey]int // the last index in the tail
	last  string           // digest of the last row of the dataset before the position

	history []filesKey // of the last rows of the dataset
	listed  int
	seen    map[filesKey]bool // keys of the tail
	after   bool              // a key of the tail was seen for the first time after the best row
	best    candidate
}

// candidate is a row of the dataset whose key is in the tail.
type candidate struct {
	listed  int // number of rows up to it, 0 without a row
	name    string
	index   int // in the tail
	matched int // number of rows of the tail before it in their order
	ordered bool
	last    bool // it is equal to the last row read
}

func newAnchor(at Position) *anchor {
	a := &anchor{tail: at.tail, index: map[filesKey]int{}, seen: map[filesKey]bool{}, last: at.LastRow, best: candidate{index: -1}}
	for i := range at.tail.len() {
		a.index[at.tail.key(i)] = i
	}
	return a
}

// add reports whether the row is the best one so far.
func (a *anchor) add(row manifest.Row) bool {
	key := keyOfRow(row)
	a.listed++
	if a.history = append(a.history, key); len(a.history) > 4*TailRows {
		a.history = append(a.history[:0], a.history[2*TailRows:]...)
	}
	i, ok := a.index[key]
	if !ok {
		return false
	}
	first := !a.seen[key]
	a.seen[key] = true
	if i < a.best.index {
		a.after = a.after || first
		return false
	}
	c := a.candidate(row.Name, i)
	c.last = i == a.tail.len()-1 && a.last == digestOfRow(row)
	if i == a.best.index && !c.betterThan(a.best) {
		return false
	}
	a.best, a.after = c, false
	return true
}

// candidate compares the rows up to the last one with the tail up to index i.
func (a *anchor) candidate(name string, i int) candidate {
	c := candidate{listed: a.listed, name: name, index: i, ordered: true}
	for h := len(a.history) - 1; h >= 0 && i >= 0; h-- {
		if _, ok := a.index[a.history[h]]; !ok {
			continue // a new row
		}
		k := i
		for k >= 0 && a.tail.key(k) != a.history[h] {
			k-- // a removed row
		}
		if k < 0 {
			c.ordered = false
			return c
		}
		c.matched++
		i = k - 1
	}
	return c
}

// betterThan compares candidates with equal keys.
func (c candidate) betterThan(other candidate) bool {
	if c.last != other.last {
		return c.last
	}
	return c.matched > other.matched
}

// found reports whether the dataset has an anchor.
func (a *anchor) found() bool { return a.best.ordered && !a.after }

package coordinator

import (
	"slices"

	"ddiff/manifest"
)

// Counts says where the items of a manifest are. Items is the sum of the others.
type Counts struct {
	Items, Done, Failed, Dead, Pending int
}

// of is the count of the items with an outcome; without a final one they are pending.
func (c *Counts) of(o manifest.Outcome) *int {
	switch o {
	case manifest.OutcomeDone:
		return &c.Done
	case manifest.OutcomeFailed:
		return &c.Failed
	case manifest.OutcomeDead:
		return &c.Dead
	}
	return &c.Pending
}

// ledger knows the state of every item of the manifest. Rows with equal bytes and settings
// share one identity: one result then counts for all of them.
type ledger struct {
	items   []manifest.Item            // every item of the manifest, in the order of work
	places  map[string][]int           // identity -> the items that have it, as indices
	results map[string]manifest.Result // identity -> final result
	counts  Counts
}

func newLedger() *ledger {
	return &ledger{places: map[string][]int{}, results: map[string]manifest.Result{}}
}

// expect enters an item, as pending unless its identity has a final state already.
func (l *ledger) expect(it manifest.Item) {
	l.places[it.ID] = append(l.places[it.ID], len(l.items))
	l.items = append(l.items, it)
	l.counts.Items++
	*l.counts.of(l.results[it.ID].Outcome)++
}

// settle enters the final state of an identity, and returns the items that have it by that.
// The first final state stands; what is no final state is not entered.
func (l *ledger) settle(r manifest.Result) []manifest.Item {
	places, count := l.places[r.Item.ID], l.counts.of(r.Outcome)
	if _, ok := l.results[r.Item.ID]; ok || len(places) == 0 || count == &l.counts.Pending {
		return nil
	}
	l.results[r.Item.ID] = r
	l.counts.Pending -= len(places)
	*count += len(places)
	settled := make([]manifest.Item, len(places))
	for i, place := range places {
		settled[i] = l.items[place]
	}
	return settled
}

// pending lists the items without a final state, one for each identity, in order.
func (l *ledger) pending() []manifest.Item {
	var out []manifest.Item
	seen := map[string]bool{}
	for _, it := range l.items {
		if _, ok := l.results[it.ID]; !ok && !seen[it.ID] {
			seen[it.ID] = true
			out = append(out, it)
		}
	}
	return out
}

// all lists the final results, one for each item of the manifest, in its order.
func (l *ledger) all() []manifest.Result {
	var out []manifest.Result
	for _, it := range l.items {
		if r, ok := l.results[it.ID]; ok {
			r.Item = it
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b manifest.Result) int { return a.Item.Index - b.Item.Index })
	return out
}

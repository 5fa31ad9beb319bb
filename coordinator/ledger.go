package coordinator

import (
	"slices"

	"ddiff/manifest"
)

// Counts says where the items of a manifest are. Items is the sum of the others.
type Counts struct {
	Items, Done, Failed, Dead, Pending int
}

// ledger knows the state of every item of the manifest. Rows with equal bytes and settings
// share one identity: one result then counts for all of them.
type ledger struct {
	items   []manifest.Item            // every item of the manifest, in the order of work
	places  map[string]int             // identity -> number of items that have it
	results map[string]manifest.Result // identity -> final result
	counts  Counts
}

func newLedger() *ledger {
	return &ledger{places: map[string]int{}, results: map[string]manifest.Result{}}
}

// expect enters an item as pending.
func (l *ledger) expect(it manifest.Item) {
	l.items = append(l.items, it)
	l.places[it.ID]++
	l.counts.Items++
	l.counts.Pending++
}

// settle enters the final state of an identity, and tells whether that is news. The first
// final state stands.
func (l *ledger) settle(r manifest.Result) bool {
	n := l.places[r.Item.ID]
	if _, ok := l.results[r.Item.ID]; ok || n == 0 {
		return false
	}
	l.results[r.Item.ID] = r
	l.counts.Pending -= n
	switch r.Outcome {
	case manifest.OutcomeDone:
		l.counts.Done += n
	case manifest.OutcomeFailed:
		l.counts.Failed += n
	case manifest.OutcomeDead:
		l.counts.Dead += n
	}
	return true
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

package gpuworker

import (
	"cmp"
	"slices"
)

// rotation is smooth weighted round robin over the campaigns of one class, charged by the
// items that were really leased.
//
// Each campaign has a credit. When k items were leased of one, all that have work earn k times
// their weight, and that one pays k times the sum of their weights: credits keep the sum zero,
// and the campaign with the largest credit, its next earning included, is first in turn. Over
// any stretch in which the same campaigns have work, the items of each are its share, give or
// take one lease. For the weights 5, 1, 1 and single items the order is a a b a c a a. What
// has no work neither saves credit nor keeps debts.
type rotation struct {
	credit map[string]int
}

// turn is a campaign that may be next.
type turn struct {
	id     string
	weight int
}

// order sorts the campaigns by whose turn it is.
func (r *rotation) order(all []turn) []turn {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b turn) int {
		return cmp.Compare(r.credit[b.id]+b.weight, r.credit[a.id]+a.weight)
	})
	return sorted
}

// charge notes that k items of a campaign were leased; working are the campaigns that may
// have work, that one among them.
func (r *rotation) charge(id string, k int, working []turn) {
	if r.credit == nil {
		r.credit = map[string]int{}
	}
	sum := 0
	for _, t := range working {
		r.credit[t.id] += k * t.weight
		sum += t.weight
	}
	r.credit[id] -= k * sum
}

// idle notes that a campaign has no work.
func (r *rotation) idle(id string) { delete(r.credit, id) }

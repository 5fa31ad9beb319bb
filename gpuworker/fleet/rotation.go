package fleet

import (
	"cmp"
	"slices"
)

// rotation is smooth weighted round robin over the campaigns of one priority, charged by the number of leased items.
//
// Each campaign has a credit. When k items of a campaign were leased, every campaign with work earns k times its weight,
// and the leased campaign pays k times the sum of these weights, so that the credits add up to zero. The campaign with
// the largest sum of credit and weight is next. While the same campaigns have work, the share of items of each campaign
// is its weight's share, within one lease. For the weights 5, 1, 1 and single items the order is a a b a c a a. A
// campaign without work loses credit and debt.
type rotation struct {
	credit map[string]int
}

// contender is a campaign that may be next.
type contender struct {
	id     string
	weight int
}

// order sorts the campaigns, next campaign first.
func (r *rotation) order(all []contender) []contender {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b contender) int {
		return cmp.Compare(r.credit[b.id]+b.weight, r.credit[a.id]+a.weight)
	})
	return sorted
}

// charge records that k items of a campaign were leased. working are the campaigns that may have work, including this
// campaign.
func (r *rotation) charge(id string, k int, working []contender) {
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

// idle records that a campaign has no work.
func (r *rotation) idle(id string) { delete(r.credit, id) }

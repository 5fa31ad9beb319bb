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

// order sorts the campaigns, next campaign first.
func (r *rotation) order(all []*campaign) []*campaign {
	next := func(c *campaign) int { return r.credit[c.record.ID] + c.record.Share() }
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b *campaign) int { return cmp.Compare(next(b), next(a)) })
	return sorted
}

// charge records that k items of a campaign were leased. working are the campaigns that may have work, including this
// campaign.
func (r *rotation) charge(id string, k int, working []*campaign) {
	if r.credit == nil {
		r.credit = map[string]int{}
	}
	sum := 0
	for _, c := range working {
		r.credit[c.record.ID] += k * c.record.Share()
		sum += c.record.Share()
	}
	r.credit[id] -= k * sum
}

// idle records that a campaign has no work.
func (r *rotation) idle(id string) { delete(r.credit, id) }

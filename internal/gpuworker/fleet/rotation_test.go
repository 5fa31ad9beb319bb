package fleet

import (
	"strings"
	"testing"

	"ddiff/internal/record"
)

// weighted returns campaigns a, b and so on with weights.
func weighted(weights ...int) (all []*campaign) {
	for i, w := range weights {
		all = append(all, &campaign{record: record.Campaign{ID: string(rune('a' + i)), Weight: w}})
	}
	return all
}

// run charges n leases of k items and returns the order of the campaigns.
func (r *rotation) run(n, k int, all []*campaign) string {
	var order strings.Builder
	for range n {
		first := r.order(all)[0]
		r.charge(first.record.ID, k, all)
		order.WriteString(first.record.ID)
	}
	return order.String()
}

// urgent makes the first of some campaigns urgent.
func urgent(all []*campaign) []*campaign {
	all[0].record.Urgent = true
	return all
}

func TestRotationOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		all  []*campaign
		k    int
		want string
	}{
		{"weights 5, 1, 1, as in the literature", weighted(5, 1, 1), 1, "aabacaa"},
		{"equal weights", weighted(1, 1), 1, "abababab"},
		{"weights 3, 1 in leases of 4", weighted(3, 1), 4, "abaaabaa"},
		{"alone", weighted(7), 3, "aaaa"},
		{"one is late", urgent(weighted(1, 1)), 1, "aaaa"},
	} {
		r := &rotation{}
		if got := r.run(len(c.want), c.k, c.all); got != c.want {
			t.Errorf("%s: order %s, want %s", c.name, got, c.want)
		}
	}
}

// With leases of different sizes, the numbers of items follow the weights, not the numbers of leases.
func TestRotationChargesItems(t *testing.T) {
	t.Parallel()
	r, all := &rotation{}, weighted(2, 1)
	size, items := map[string]int{"a": 8, "b": 3}, map[string]int{}
	for range 3000 {
		first := r.order(all)[0].record.ID
		r.charge(first, size[first], all)
		items[first] += size[first]
	}
	// The shares are exact within the credit of one lease.
	if off := items["a"] - 2*items["b"]; off < -24 || off > 24 {
		t.Errorf("%v items for the weights 2 and 1", items)
	}
	if sum := r.credit["a"] + r.credit["b"]; sum != 0 {
		t.Errorf("the credits' sum is %d", sum)
	}
}

// A campaign without work loses credit and debt.
func TestRotationIdle(t *testing.T) {
	t.Parallel()
	r, both := &rotation{}, weighted(1, 1)
	for range 100 { // b has no work
		r.idle("b")
		r.charge("a", 1, both[:1])
	}
	if got := r.run(6, 1, both); got != "ababab" {
		t.Errorf("order %s after a pause of b", got)
	}
	r.charge("a", 1000, both)
	r.idle("a")
	r.idle("b")
	if got := r.run(6, 1, both); got != "ababab" {
		t.Errorf("order %s after a pause of both", got)
	}
}

package fleet

import (
	"strings"
	"testing"
)

// run charges n leases of k items and returns the order of the campaigns.
func (r *rotation) run(n, k int, all []contender) string {
	var order strings.Builder
	for range n {
		first := r.order(all)[0]
		r.charge(first.id, k, all)
		order.WriteString(first.id)
	}
	return order.String()
}

func TestRotationOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		all  []contender
		k    int
		want string
	}{
		{"weights 5, 1, 1, as in the literature", []contender{{"a", 5}, {"b", 1}, {"c", 1}}, 1, "aabacaa"},
		{"equal weights", []contender{{"a", 1}, {"b", 1}}, 1, "abababab"},
		{"weights 3, 1 in leases of 4", []contender{{"a", 3}, {"b", 1}}, 4, "abaaabaa"},
		{"alone", []contender{{"a", 7}}, 3, "aaaa"},
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
	r, all := &rotation{}, []contender{{"a", 2}, {"b", 1}}
	size, items := map[string]int{"a": 8, "b": 3}, map[string]int{}
	for range 3000 {
		first := r.order(all)[0].id
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
	r, a, b := &rotation{}, contender{"a", 1}, contender{"b", 1}
	for range 100 { // b has no work
		r.idle("b")
		r.charge("a", 1, []contender{a})
	}
	if got := r.run(6, 1, []contender{a, b}); got != "ababab" {
		t.Errorf("order %s after a pause of b", got)
	}
	r.charge("a", 1000, []contender{a, b})
	r.idle("a")
	r.idle("b")
	if got := r.run(6, 1, []contender{a, b}); got != "ababab" {
		t.Errorf("order %s after a pause of both", got)
	}
}

package gpuworker

import (
	"strings"
	"testing"
)

// run takes n leases of k items and gives the order of the campaigns.
func (r *rotation) run(n, k int, all []turn) string {
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
		all  []turn
		k    int
		want string
	}{
		{"weights 5, 1, 1, as in the literature", []turn{{"a", 5}, {"b", 1}, {"c", 1}}, 1, "aabacaa"},
		{"equal weights", []turn{{"a", 1}, {"b", 1}}, 1, "abababab"},
		{"weights 3, 1 in leases of 4", []turn{{"a", 3}, {"b", 1}}, 4, "abaaabaa"},
		{"alone", []turn{{"a", 7}}, 3, "aaaa"},
	} {
		r := &rotation{}
		if got := r.run(len(c.want), c.k, c.all); got != c.want {
			t.Errorf("%s: order %s, want %s", c.name, got, c.want)
		}
	}
}

// Leases of very different sizes: the items come to the weights' shares, not the leases.
func TestRotationChargesItems(t *testing.T) {
	t.Parallel()
	r, all := &rotation{}, []turn{{"a", 2}, {"b", 1}}
	size, items := map[string]int{"a": 8, "b": 3}, map[string]int{}
	for range 3000 {
		first := r.order(all)[0].id
		r.charge(first, size[first], all)
		items[first] += size[first]
	}
	// The shares are kept up to one lease's worth of credit.
	if off := items["a"] - 2*items["b"]; off < -24 || off > 24 {
		t.Errorf("%v items for the weights 2 and 1", items)
	}
	if sum := r.credit["a"] + r.credit["b"]; sum != 0 {
		t.Errorf("the credits' sum is %d", sum)
	}
}

// What had no work for long has not saved turns for later, and keeps no debts.
func TestRotationIdle(t *testing.T) {
	t.Parallel()
	r, a, b := &rotation{}, turn{"a", 1}, turn{"b", 1}
	for range 100 { // b has none
		r.idle("b")
		r.charge("a", 1, []turn{a})
	}
	if got := r.run(6, 1, []turn{a, b}); got != "ababab" {
		t.Errorf("order %s after a pause of b", got)
	}
	r.charge("a", 1000, []turn{a, b})
	r.idle("a")
	r.idle("b")
	if got := r.run(6, 1, []turn{a, b}); got != "ababab" {
		t.Errorf("order %s after a pause of both", got)
	}
}

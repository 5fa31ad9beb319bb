package coordinator

import "testing"

// A rejection counts that comes twice in succession, and the third of different ones. Then the next one is doubted again.
func TestDoubt(t *testing.T) {
	t.Parallel()
	var d doubt
	for i, look := range []struct {
		reason string
		counts bool
	}{{"a", false}, {"a", true}, {"a", false}, {"b", false}, {"b", true}, {"a", false}, {"b", false}, {"a", true}, {"a", false}} {
		if got := d.confirms(look.reason); got != look.counts {
			t.Errorf("look %d, reason %s: counts %t", i, look.reason, got)
		}
	}
}

package figure

import (
	"testing"
)

// A sample has the measurements with the smallest keys, and is partial from the first one beyond its limit on.
func TestSampleIsPartialBeyondItsLimit(t *testing.T) {
	t.Parallel()
	s := sample{limit: 3}
	for i, c := range []struct {
		key, chosen string
		partial     bool
	}{{"d", "d", false}, {"b", "bd", false}, {"c", "bcd", false}, {"e", "bcd", true}, {"a", "abc", true}} {
		s.add(sampled{key: c.key})
		got := ""
		for _, v := range s.chosen {
			got += v.key
		}
		if got != c.chosen || s.isPartial() != c.partial || s.seen != i+1 {
			t.Errorf("after %d: %s, partial %t, want %+v", i+1, got, s.isPartial(), c)
		}
	}
	for _, key := range []string{"a", "b", "c"} {
		if v := s.find(key); v == nil || v.key != key {
			t.Errorf("find %s: %+v", key, v)
		}
	}
	if v := s.find("d"); v != nil {
		t.Errorf("a measurement that was not chosen: %s", v.key)
	}
}

package manifest

import (
	"strings"
	"testing"
)

// A text changes the named limits only, and none if one is wrong.
func TestBudgetSet(t *testing.T) {
	t.Parallel()
	b := Budget{Items: 7, Cost: 3}
	if err := b.Set("seconds=90.5,items=0,soft=0.5"); err != nil || b != (Budget{Seconds: 90.5, Cost: 3, Soft: 0.5}) {
		t.Errorf("%+v, %v", b, err)
	}
	before := b
	for text, want := range map[string]string{
		"": "is no limit", "items": "is no limit", "items=1.5": "is no limit", "hours=3": "is no limit", "items=9,seconds=x": "is no limit",
		"items=9,seconds=-1": "seconds: -1 is outside", "cost=NaN": "cost: NaN is outside", "soft=2": "soft: 2 is outside",
	} {
		if err := b.Set(text); err == nil || !strings.Contains(err.Error(), want) || b != before {
			t.Errorf("%q: %v, %+v", text, err, b)
		}
	}
}

package budget

import (
	"testing"

	"ddiff/manifest"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		limits     manifest.Budget
		used       Used
		over, near string
	}{
		{manifest.Budget{}, Used{1e6, 1e9, 1e9}, "", ""},
		{manifest.Budget{Items: 10}, Used{Items: 10}, "", "10 of 10 items"},
		{manifest.Budget{Items: 10}, Used{Items: 11}, "11 of 10 items", ""},
		{manifest.Budget{Seconds: 10}, Used{Seconds: 7.9}, "", ""},
		{manifest.Budget{Seconds: 10}, Used{Seconds: 8}, "", "8 of 10 device-seconds"},
		{manifest.Budget{Seconds: 10, Soft: 0.5}, Used{Seconds: 5}, "", "5 of 10 device-seconds"},
		{manifest.Budget{Seconds: 10}, Used{Seconds: 10}, "10 of 10 device-seconds", ""},
		{manifest.Budget{Seconds: 0.5}, Used{Seconds: 2.3456}, "2.35 of 0.5 device-seconds", ""},
		{manifest.Budget{Seconds: 36000}, Used{Seconds: 30000.4}, "", "30000 of 36000 device-seconds"},
		{manifest.Budget{Seconds: 10, Cost: 2.5}, Used{Seconds: 9, Cost: 2.75}, "a cost of 2.75 of 2.5", "9 of 10 device-seconds"},
	} {
		if over, near := Compare(tt.limits, tt.used); over != tt.over || near != tt.near {
			t.Errorf("%+v of %+v: %q, %q", tt.used, tt.limits, over, near)
		}
	}
}

func TestQuotaOf(t *testing.T) {
	t.Parallel()
	q := Quotas{"ann": {Items: 1}, AnyOwner: {Items: 2}}
	for owner, want := range map[string]int{"ann": 1, "bob": 2, "": 0} {
		if got := q.Of(owner).Items; got != want {
			t.Errorf("%q may have %d items, want %d", owner, got, want)
		}
	}
}

package item_test

import (
	"slices"
	"strings"
	"testing"

	"ddiff/restore/item"
)

func TestKeptStates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]int{"0,10, 20": {0, 10, 20}, "every 8": {0, 8, 16, 24}, "7": {7}, "40": nil} {
		at, err := item.KeptStates(text)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for step := range 25 {
			if at(step) {
				got = append(got, step)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"every", "every 0", "every -1", "a", "1,,2", "-1", "1.5"} {
		if _, err := item.KeptStates(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	if err := item.CheckStates("every 1", 127, 3*256*256); err != nil {
		t.Error(err)
	}
	if err := item.CheckStates("every 1", 1000, 3*256*256); err == nil || !strings.Contains(err.Error(), "1001 states") || !strings.HasSuffix(err.Error(), "keep every 8") {
		t.Errorf("%v", err)
	}
	if err := item.CheckStates("every 1", 30, 3*4000*3000); err == nil || !strings.Contains(err.Error(), "more than 1 GiB; keep at most 7") {
		t.Errorf("%v", err)
	}
}

package main

import (
	"strings"
	"testing"
	"time"
)

func TestScoreLine(t *testing.T) {
	t.Parallel()
	s := score{name: "storage", reached: 88, unreached: 12, equivalent: 3}
	for o, n := range map[outcome]int{noticed: 46, survived: 4, timedOut: 2, unbuilt: 1} {
		for range n {
			s.add(o)
		}
	}
	if want := "package=storage noticed=0.92 unreached=0.12 tried=53 of=88 survived=4 timed_out=2 not_compiled=1 equivalent=3"; s.String() != want {
		t.Errorf("%s\nwant %s", s, want)
	}
	if !s.reachesGoal() {
		t.Error("a package at the limits misses the goal")
	}
	// A line never shows a goal that is missed.
	for _, missed := range []score{
		{reached: 1000, noticed: 919, survived: 81},
		{reached: 879, unreached: 121, noticed: 879},
		{reached: 5},
	} {
		if missed.reachesGoal() || strings.Contains(missed.String(), "noticed=0.92 ") || strings.Contains(missed.String(), "unreached=0.12 ") {
			t.Errorf("%+v: goal %v, line %s", missed, missed.reachesGoal(), missed)
		}
	}
}

// TestBatches: the fastest tests run first, and each runs once.
func TestBatches(t *testing.T) {
	t.Parallel()
	tests := []test{{name: "a", wall: 3 * time.Second}, {name: "b", wall: 200 * time.Millisecond}, {name: "c"}, {name: "d", wall: 300 * time.Millisecond}, {name: "e", wall: time.Second}}
	for _, c := range []struct {
		indices []int
		want    string
	}{
		{[]int{0, 1, 2, 3, 4}, "c b d | e | a"},
		{[]int{4, 1, 0, 3}, "b d | e | a"},
		{[]int{0, 3}, "d | a"},
		{[]int{0}, "a"},
		{[]int{3, 1}, "b d"},
	} {
		var parts []string
		for _, batch := range batches(c.indices, tests, nil) {
			var names []string
			for _, test := range batch {
				names = append(names, test.name)
			}
			parts = append(parts, strings.Join(names, " "))
		}
		if got := strings.Join(parts, " | "); got != c.want {
			t.Errorf("%v: %s, want %s", c.indices, got, c.want)
		}
	}
}

package main

import (
	"os"
	"path/filepath"
	"testing"
)

const example = `package example

const limit = 2 *
	3

func (s *set[K]) add(i int) {
	switch {
	case i < limit, i > 9:
		s.n++
	default:
		for j := 0; j <= i; j++ {
			s.n -= -j
		}
	}
}

func plain(a, b bool) bool { return a && b }

func call(int, func() int, int) {}

func literal(n int) {
	call(n, func() int { return n * 2 }, n + 3)
}
`

func parseExample(t *testing.T) *source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "example.go")
	if err := os.WriteFile(path, []byte(example), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := parseSource(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPlaces: an operator has a name that does not depend on its line.
func TestPlaces(t *testing.T) {
	t.Parallel()
	s := parseExample(t)
	for at, want := range map[position]place{
		{3, 17}:  {"", "2 * 3"},
		{8, 9}:   {"set.add", "i < limit"},
		{8, 20}:  {"set.add", "i > 9"},
		{9, 6}:   {"set.add", "s.n++"},
		{11, 17}: {"set.add", "j <= i"},
		{12, 8}:  {"set.add", "s.n -= -j"},
		{12, 11}: {"set.add", "-j"},
		{17, 39}: {"plain", "a && b"},
	} {
		if got := s.places[at]; got != want {
			t.Errorf("%v: %+v, want %+v", at, got, want)
		}
	}
}

// TestReached: a test that reaches a switch reaches its conditions, and one that reaches a statement the part behind a
// function literal. Coverage profiles have neither.
func TestReached(t *testing.T) {
	t.Parallel()
	s := parseExample(t)
	for _, c := range []struct {
		blocks []block
		at     position
		want   bool
	}{
		{[]block{{6, 30, 7, 9}}, position{8, 9}, true},
		{[]block{{6, 30, 7, 9}}, position{8, 20}, true},
		{[]block{{6, 30, 7, 9}}, position{9, 6}, false},
		{[]block{{9, 3, 9, 8}}, position{9, 6}, true},
		{[]block{{9, 3, 9, 8}}, position{8, 9}, false},
		{[]block{{21, 21, 22, 21}}, position{22, 41}, true},
		{[]block{{21, 21, 22, 21}}, position{22, 32}, false},
		{[]block{{22, 23, 22, 34}}, position{22, 41}, false},
		{[]block{{22, 23, 22, 34}}, position{22, 32}, true},
		{[]block{{1, 1, 2, 1}}, position{3, 17}, false},
	} {
		if got := s.reached(c.blocks, c.at); got != c.want {
			t.Errorf("%v is reached by %v: %v, want %v", c.at, c.blocks, got, c.want)
		}
	}
}

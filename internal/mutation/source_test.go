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

// TestConditions: a test that reaches a switch reaches its conditions, which coverage profiles do not have.
func TestConditions(t *testing.T) {
	t.Parallel()
	s := parseExample(t)
	found := profile{"example.go": s.conditions([]block{{6, 30, 7, 9}})}
	if !found.contains("example.go", 8, 9) || !found.contains("example.go", 8, 20) || found.contains("example.go", 9, 6) {
		t.Errorf("conditions %v", found)
	}
	if found := s.conditions([]block{{9, 3, 9, 8}, {17, 28, 17, 43}}); len(found) != 0 {
		t.Errorf("conditions %v of a switch that is not reached", found)
	}
}

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func writeList(t *testing.T, text string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "restore"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "restore", "noise.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return folder
}

const entry = `- file: a.go
  function: f
  expression: i < n
  type: CONDITIONALS_BOUNDARY
  reason: the loop ends there anyway
`

func TestEquivalents(t *testing.T) {
	t.Parallel()
	list, err := readEquivalents(writeList(t, entry), "restore/noise")
	if err != nil {
		t.Fatal(err)
	}
	listed := mutant{file: "a.go", kind: "CONDITIONALS_BOUNDARY", line: 3, place: place{"f", "i < n"}}
	twin, other, function, file, expression := listed, listed, listed, listed, listed
	twin.line, other.kind, function.place.function, file.file, expression.place.expression = 9, "CONDITIONALS_NEGATION", "g", "b.go", "i < m"
	others, n, err := list.remove([]mutant{listed, other, twin, function, file, expression}, regexp.MustCompile(""))
	if err != nil || n != 2 || len(others) != 4 {
		t.Errorf("%d equivalent mutants, %d others, %v; want 2 and 4", n, len(others), err)
	}
	// An entry that matches nothing is an error, unless its file is not mutated.
	if _, _, err := list.remove([]mutant{other}, regexp.MustCompile("a")); err == nil || !strings.Contains(err.Error(), "noise.yaml: entry 1 matches no mutant") {
		t.Errorf("stale entry: %v", err)
	}
	if others, n, err := list.remove([]mutant{file}, regexp.MustCompile("b")); err != nil || n != 0 || len(others) != 1 {
		t.Errorf("entry of another file: %d equivalent mutants, %d others, %v", n, len(others), err)
	}
}

func TestReadEquivalents(t *testing.T) {
	t.Parallel()
	if list, err := readEquivalents(t.TempDir(), "restore/noise"); err != nil || len(list.entries) != 0 {
		t.Errorf("no list: %v, %v", list.entries, err)
	}
	for _, c := range []struct{ text, words string }{
		{strings.Replace(entry, "reason", "because", 1), "because"},
		{strings.Replace(entry, "reason: the loop ends there anyway", "", 1), "entry 1"},
		{strings.Replace(entry, "expression: i < n", "", 1), "entry 1"},
		{"file: a.go", "noise.yaml"},
	} {
		if _, err := readEquivalents(writeList(t, c.text), "restore/noise"); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%q: error %v, want one with %q", c.text, err, c.words)
		}
	}
}

// TestListsOfThisRepository: every list belongs to a package that is mutated, and names files and functions that exist.
// That each entry matches a mutant is checked by every run.
func TestListsOfThisRepository(t *testing.T) {
	t.Parallel()
	lists := 0
	for _, name := range strings.Fields(packages) {
		list, err := readEquivalents("equivalent", name)
		if err != nil {
			t.Error(err)
		}
		if len(list.entries) > 0 {
			lists++
		}
		for _, e := range list.entries {
			s, err := parseSource(filepath.Join("..", "..", name, e.File))
			if err != nil {
				t.Errorf("%s: %v", list.path, err)
				continue
			}
			found := false
			for _, p := range s.places {
				found = found || p == place{e.Function, e.Expression}
			}
			if !found {
				t.Errorf("%s: %s has no operator %q in %s", list.path, e.File, e.Expression, e.Function)
			}
		}
	}
	files, err := filepath.Glob("equivalent/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Glob("equivalent/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(files) + len(below); n != lists {
		t.Errorf("%d lists, of which %d have entries and belong to a package", n, lists)
	}
}

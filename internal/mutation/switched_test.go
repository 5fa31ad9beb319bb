package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const several = `package several

import "os"

const limit = 2 * 3

type level int

func grow[T int | level](x T, n int) T {
	for i := 0; i < n; i++ {
		x = x*2 + 1
	}
	return x
}

func name(a, b string) string { return a + "-" + b }

func signed(x float64, small bool) float64 {
	if small == (x < limit) && x != 3 {
		return -x
	}
	return x
}

func size(f os.FileInfo) int64 { return f.Size() - 1 }
`

const severalTest = `package several

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFlaky(t *testing.T) {
	name := filepath.Join(os.Getenv("TMPDIR"), "flaky")
	if _, err := os.Stat(name); err != nil {
		os.WriteFile(name, nil, 0o644)
		t.Fatal("the first run")
	}
}

func TestSeveral(t *testing.T) {
	if grow(1, 2) != 7 || grow(level(1), 0) != 1 || name("a", "b") != "a-b" || signed(1, true) != -1 || signed(7, true) != 7 {
		t.Fatal("wrong")
	}
}
`

// TestSwitched compares each mutant of one program with the program of this mutant alone.
func TestSwitched(t *testing.T) {
	t.Parallel()
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	w := newWorkspace(folder, strings.TrimSpace(string(cache)), limits{wall: 3 * time.Minute, cpu: time.Second})
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	source := filepath.Join(w.tree(), "several", "several.go")
	write(filepath.Join(w.tree(), "go.mod"), "module ddiff\n\ngo 1.24\n")
	write(source, several)
	write(filepath.Join(w.tree(), "several", "several_test.go"), severalTest)
	write(filepath.Join(w.temporary(), "x"), "")
	cases := []struct {
		from, to, around string
		together         bool
		want             outcome
	}{
		{"*", "/", "limit = 2 * 3", false, noticed}, // a constant
		{"<", "<=", "i < n", true, noticed},
		{"<", ">=", "i < n", true, noticed},
		{"++", "--", "i++", true, noticed},
		{"*", "/", "x*2", true, noticed},
		{"+", "-", "x*2 + 1", true, noticed},
		{"+", "-", `"-" + b`, false, unbuilt},
		{"==", "!=", "small == (", true, noticed},
		{"<", "<=", "x < limit", true, survived},
		{"!=", "==", "x != 3", true, noticed},
		{"-", "+", "-x", true, noticed},
		{"-", "+", "f.Size() - 1", true, survived},
	}
	var mutants []mutant
	for i, c := range cases {
		at := strings.Index(several, c.around) + strings.Index(c.around, c.from)
		if c.around == "x*2 + 1" {
			at = strings.Index(several, "2 + 1") + 2
		}
		m := mutant{folder: "several", file: "several.go", source: filepath.Join(folder, fmt.Sprintf("%d.go", i)), tests: []int{1}}
		m.line = strings.Count(several[:at], "\n") + 1
		m.column = at - strings.LastIndex(several[:at], "\n")
		write(m.source, several[:at]+c.to+several[at+len(c.from):])
		mutants = append(mutants, m)
	}
	tests, err := w.mapTests(t.Context(), "several")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(w.temporary(), "flaky")); err != nil {
		t.Fatal(err)
	}
	programs := w.together(t.Context(), "several", mutants, tests)
	if data, err := os.ReadFile(source); err != nil || string(data) != several {
		t.Fatalf("the source is not restored: %v", err)
	}
	if files, err := os.ReadDir(filepath.Dir(source)); err != nil || len(files) != 2 {
		t.Errorf("files %v, %v", files, err)
	}
	for i, c := range cases {
		got, err := w.tryOnce(t.Context(), mutants[i], tests, programs[i])
		if err != nil || got != c.want || (programs[i].active == i+1) != c.together {
			t.Errorf("%s to %s in %s: %s, program %d, %v; want %s, together: %v", c.from, c.to, c.around, got, programs[i].active, err, c.want, c.together)
		}
	}
	// A test that fails once hides no other test, which its failure has skipped.
	if err := os.Remove(filepath.Join(w.temporary(), "flaky")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	both := mutants[1]
	both.tests = []int{0, 1}
	if got, err := w.judge(t.Context(), both, tests, programs[1]); err != nil || got != noticed {
		t.Errorf("beside a test that fails once: %s, %v", got, err)
	}
	if alone := w.together(t.Context(), "several", mutants, append(slices.Clone(tests), test{name: "TestSeveral|Other[", wall: time.Second})); alone[1].active != 0 {
		t.Error("a program whose tests fail without a mutant is used")
	}
}

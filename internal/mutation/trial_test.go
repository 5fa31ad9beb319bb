package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const counter = `package counter

func sum(n int) int {
	total := 0
	for i := 0; i < n; i++ {
		total += i
	}
	if total > 1000 {
		total = 1000
	}
	return total
}
`

const counterTest = `package counter

import "testing"

func TestSum(t *testing.T) {
	if got := sum(4); got != 6 {
		t.Fatalf("sum %d", got)
	}
}

func TestOther(t *testing.T) {}

func TestBroken(t *testing.T) { t.Fatal("broken") }
`

// TestTry builds and tests mutants of a small package.
func TestTry(t *testing.T) {
	t.Parallel()
	output, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	w := newWorkspace(folder, strings.TrimSpace(string(output)), limits{wall: 3 * time.Minute, cpu: time.Second})
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	source := filepath.Join(w.tree(), "counter", "counter.go")
	write(filepath.Join(w.tree(), "go.mod"), "module ddiff\n\ngo 1.24\n")
	write(source, counter)
	write(filepath.Join(w.tree(), "counter", "counter_test.go"), counterTest)
	if err := os.MkdirAll(w.temporary(), 0o755); err != nil {
		t.Fatal(err)
	}
	tests, err := w.mapTests(t.Context(), "counter")
	if err != nil {
		t.Fatal(err)
	}
	if len(tests) != 2 || tests[0].name != "TestSum" || tests[1].name != "TestOther" {
		t.Fatalf("tests %+v, want TestSum and TestOther without the broken one", tests)
	}
	parsed, err := parseSource(source)
	if err != nil {
		t.Fatal(err)
	}
	sum, other := tests[0].reaches["counter.go"], tests[1].reaches["counter.go"]
	if !parsed.reached(sum, position{6, 9}) || parsed.reached(sum, position{9, 9}) || parsed.reached(other, position{6, 9}) {
		t.Errorf("TestSum reaches %v, TestOther %v", sum, other)
	}
	for _, c := range []struct {
		from, to string
		want     outcome
	}{
		{"total += i", "total -= i", noticed},
		{"total > 1000", "total >= 1000", survived},
		{"total > 1000", "total && 1000", unbuilt},
		{"i++", "i--", noticed}, // without end
		{"total := 0", "total := 0; if n > 0 { select {} }", noticed},
	} {
		m := mutant{folder: "counter", file: "counter.go", source: filepath.Join(folder, "mutant.go"), tests: []int{0}}
		write(m.source, strings.Replace(counter, c.from, c.to, 1))
		got, err := w.tryOnce(t.Context(), m, tests, program{})
		if err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", c.to, got, err, c.want)
		}
		if data, err := os.ReadFile(source); err != nil || string(data) != counter {
			t.Errorf("%s: the source is not restored: %v", c.to, err)
		}
	}
	w.slack.wall = 0
	waiting := mutant{folder: "counter", file: "counter.go", source: filepath.Join(folder, "mutant.go"), tests: []int{0}}
	write(waiting.source, strings.NewReplacer("package counter", "package counter\n\nimport \"time\"",
		"total := 0", "total := 0; time.Sleep(time.Hour)").Replace(counter))
	if got, err := w.tryOnce(t.Context(), waiting, tests, program{}); err != nil || got != timedOut {
		t.Errorf("tests that wait: %s, %v", got, err)
	}
}

// TestLikelyTests: the fastest tests run first, then those that have noticed most mutants of the file, each test once.
func TestLikelyTests(t *testing.T) {
	t.Parallel()
	tests := []test{{name: "slow", wall: 9 * time.Second}, {name: "a", wall: 200 * time.Millisecond}, {name: "b", wall: 300 * time.Millisecond},
		{name: "c", wall: time.Second}, {name: "d", wall: 900 * time.Millisecond}, {name: "other", wall: 1}, {name: "e", wall: 800 * time.Millisecond}}
	for _, c := range []struct {
		noticedBy map[string]int
		want      string
	}{
		{nil, "a b|e d|c|slow"},
		{map[string]int{"slow": 1, "other": 9, "a": 5}, "a b|slow|e d|c"},
		{map[string]int{"slow": 1, "c": 3, "d": 2}, "a b|c d|e|slow"},
	} {
		var got []string
		for _, batch := range batches([]int{0, 1, 2, 3, 4, 6}, tests, c.noticedBy) {
			var names []string
			for _, one := range batch {
				names = append(names, one.name)
			}
			got = append(got, strings.Join(names, " "))
		}
		if text := strings.Join(got, "|"); text != c.want {
			t.Errorf("%v: %s, want %s", c.noticedBy, text, c.want)
		}
	}
}

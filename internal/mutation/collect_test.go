package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeCopies writes n mutants of example.go.
func writeCopies(t *testing.T, n int) string {
	t.Helper()
	folder := t.TempDir()
	copies := filepath.Join(folder, "copies", "example.go")
	if err := os.MkdirAll(copies, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := os.WriteFile(filepath.Join(copies, string(rune('0'+i))+".go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestReadReport(t *testing.T) {
	t.Parallel()
	files := map[string]*source{"example.go": parseExample(t)}
	tests := []test{
		{name: "TestA", reaches: profile{"example.go": {{6, 30, 7, 9}}}},
		{name: "TestB", reaches: profile{"example.go": {{17, 28, 17, 43}}}},
	}
	const report = `{"files": [{"file_name": "example.go", "mutations": [
		{"type": "ARITHMETIC_BASE", "status": "NOT COVERED", "line": 3, "column": 17},
		{"type": "CONDITIONALS_BOUNDARY", "status": "NOT VIABLE", "line": 8, "column": 9},
		{"type": "INVERT_LOGICAL", "status": "NOT VIABLE", "line": 17, "column": 39}]}]}`
	folder := writeCopies(t, 2)
	mutants, err := readReport([]byte(report), "x", folder, files, tests)
	if err != nil || len(mutants) != 3 {
		t.Fatalf("%v, %v", mutants, err)
	}
	for i, want := range []struct {
		text, source string
		test         int // of tests, or -1
	}{
		{"x/example.go:3:17 ARITHMETIC_BASE in : 2 * 3", "", -1},
		{"x/example.go:8:9 CONDITIONALS_BOUNDARY in set.add: i < limit", "0.go", 0},
		{"x/example.go:17:39 INVERT_LOGICAL in plain: a && b", "1.go", 1},
	} {
		m := mutants[i]
		reached := want.test < 0 && len(m.tests) == 0 || want.test >= 0 && len(m.tests) == 1 && m.tests[0] == want.test
		if m.String() != want.text || !strings.HasSuffix(m.source, want.source) || !reached {
			t.Errorf("%s from %q with tests %v, want %+v", m, m.source, m.tests, want)
		}
	}
	for n, words := range map[int]string{1: "more mutants than were written", 3: "fewer mutants than were written"} {
		if _, err := readReport([]byte(report), "x", writeCopies(t, n), files, tests); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%d copies: error %v, want %q", n, err, words)
		}
	}
	for _, c := range []struct{ from, to, words string }{
		{"NOT COVERED", "KILLED", `unexpected status "KILLED"`},
		{`"line": 8`, `"line": 7`, "no operator at example.go:7:9"},
		{"example.go", "other.go", `unknown file "other.go"`},
	} {
		if _, err := readReport([]byte(strings.Replace(report, c.from, c.to, 1)), "x", folder, files, tests); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("error %v, want %q", err, c.words)
		}
	}
}

package repository

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// The change log has a section for the version of the program.
func TestChangelogHasVersion(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), ddiff(t), "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`^ddiff (\d+\.\d+\.\d+)[ +]`).FindStringSubmatch(string(out))
	if m == nil {
		t.Fatalf("`ddiff version` begins with no version:\n%s", out)
	}
	section := regexp.MustCompile(`(?m)^## \[` + regexp.QuoteMeta(m[1]) + `\] - (unreleased|\d{4}-\d\d-\d\d)$`)
	if !section.MatchString(read(t, "CHANGELOG.md")) {
		t.Errorf("CHANGELOG.md has no section like `## [%s] - unreleased`", m[1])
	}
}

// Every entry of .ci/may-skip names an existing test.
func TestMaySkipIsCurrent(t *testing.T) {
	t.Parallel()
	for line := range strings.SplitSeq(read(t, ".ci/may-skip"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		entry, _, _ := strings.Cut(line, " ")
		if file, ok := strings.CutPrefix(entry, "tests."); ok { // a Python test
			file, test, _ := strings.Cut(file, ".")
			if !strings.Contains(read(t, "tools/tests/"+file+".py"), "\ndef "+test+"(") {
				t.Errorf(".ci/may-skip: there is no test %s", entry)
			}
			continue
		}
		// Module names have no dot before the last slash; subtests come after the test's name.
		dir, test, _ := strings.Cut(entry, ".")
		test, _, _ = strings.Cut(test, "/")
		dir, found := strings.CutPrefix(dir, "ddiff/")
		if !found {
			t.Errorf(".ci/may-skip: %s is no test of a package of this module", entry)
			continue
		}
		declared := false
		for _, name := range tracked(t, dir+"/*_test.go") {
			declared = declared || strings.Contains(read(t, name), "\nfunc "+test+"(t *testing.T)")
		}
		if !declared {
			t.Errorf(".ci/may-skip: there is no test %s", entry)
		}
	}
}

// Every test that scripts/test.sh names exists: go test succeeds when a pattern matches none.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	var sources strings.Builder
	for _, name := range tracked(t, "*_test.go") {
		sources.WriteString(read(t, name))
	}
	patterns := regexp.MustCompile(`'\^Test\(([A-Za-z|]+)\)\$'`).FindAllStringSubmatch(read(t, "scripts/test.sh"), -1)
	if len(patterns) == 0 {
		t.Error("scripts/test.sh names no tests")
	}
	for _, pattern := range patterns {
		for name := range strings.SplitSeq(pattern[1], "|") {
			if !strings.Contains(sources.String(), "\nfunc Test"+name+"(t *testing.T)") {
				t.Errorf("scripts/test.sh: there is no test Test%s", name)
			}
		}
	}
}

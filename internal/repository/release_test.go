package repository

import (
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The change log has a section for the version of the program.
func TestChangelogHasVersion(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), ddiff(t), "version").Output()
	must(t, err)
	m := regexp.MustCompile(`^ddiff (\d+\.\d+\.\d+)[ +]`).FindStringSubmatch(string(out))
	if m == nil {
		t.Fatalf("`ddiff version` begins with no version:\n%s", out)
	}
	section := regexp.MustCompile(`(?m)^## \[` + regexp.QuoteMeta(m[1]) + `\] - (unreleased|\d{4}-\d\d-\d\d)$`)
	if !section.MatchString(read(t, "CHANGELOG.md")) {
		t.Errorf("CHANGELOG.md has no section like `## [%s] - unreleased`", m[1])
	}
}

// Every entry of .ci/may-skip names an existing test, and every test that only a make target runs has an entry.
func TestMaySkipIsCurrent(t *testing.T) {
	t.Parallel()
	gated := regexp.MustCompile(`\nfunc (Test\w+)\(t \*testing\.T\) \{\n(?:\tt\.Parallel\(\)\n)?\tonlyBy\(t, `)
	for _, name := range tracked(t, "internal/testbed/*_test.go") {
		for _, m := range gated.FindAllStringSubmatch(read(t, name), -1) {
			if !strings.Contains(read(t, ".ci/may-skip"), "ddiff/internal/testbed."+m[1]+" ") {
				t.Errorf(".ci/may-skip lacks %s, which only a make target runs", m[1])
			}
		}
	}
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

// Every test that scripts/test.sh names is in the packages of its stage, and in no other: go test succeeds when a pattern matches none, and
// the stages of other packages leave it out.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	places := map[string][]string{}
	declaration := regexp.MustCompile(`(?m)^func Test(\w+)\(t \*testing\.T\)`)
	for _, file := range tracked(t, "*_test.go") {
		for _, m := range declaration.FindAllStringSubmatch(read(t, file), -1) {
			places[m[1]] = append(places[m[1]], "./"+path.Dir(file))
		}
	}
	script := read(t, "scripts/test.sh")
	for _, variable := range regexp.MustCompile(`(?m)^(\w+)=('\^Test\S+')$`).FindAllStringSubmatch(script, -1) {
		script = strings.ReplaceAll(script, `"$`+variable[1]+`"`, variable[2])
	}
	stages := regexp.MustCompile(`-run '\^Test\(([A-Za-z|]+)\)\$'((?: \./[a-z/]+)+)`).FindAllStringSubmatch(script, -1)
	if len(stages) < 2 {
		t.Errorf("scripts/test.sh names tests in %d stages", len(stages))
	}
	for _, stage := range stages {
		packages := strings.Fields(stage[2])
		for name := range strings.SplitSeq(stage[1], "|") {
			if len(places[name]) == 0 {
				t.Errorf("scripts/test.sh: there is no test Test%s", name)
			}
			for _, place := range places[name] {
				if !slices.Contains(packages, place) {
					t.Errorf("scripts/test.sh: Test%s is in %s, its stage has %s", name, place, packages)
				}
			}
		}
	}
}

package repository

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The targets of links between documents exist, with their anchors.
func TestLinks(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	documents := tracked(t, "*.md")
	for _, document := range documents {
		for _, m := range link.FindAllStringSubmatch(prose(read(t, document)), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := document
			if m[1] != "" {
				target = path.Join(path.Dir(document), m[1])
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(target))); err != nil {
				t.Errorf("%s: the link to %s has no target", document, m[1])
			} else if anchor, ok := strings.CutPrefix(m[2], "#"); ok && slices.Contains(documents, target) && !anchors(read(t, target))[anchor] {
				t.Errorf("%s: %s has no heading #%s", document, target, anchor)
			}
		}
	}
}

// prose returns a document with empty lines in place of its blocks of code.
func prose(document string) string {
	return regexp.MustCompile("(?ms)^```.*?\\n```$").ReplaceAllStringFunc(document, func(code string) string {
		return strings.Repeat("\n", strings.Count(code, "\n"))
	})
}

// anchors returns the anchors of the headings of a document.
func anchors(text string) map[string]bool {
	found, fence := map[string]bool{}, false
	dropped := regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			fence = !fence
		}
		if heading := strings.TrimLeft(line, "#"); heading != line && !fence {
			name := dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			found[strings.ReplaceAll(name, " ", "-")] = true
		}
	}
	return found
}

// The README is for visitors: everything else belongs to docs/, and the navigation of the site has every page.
func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	readme := read(t, "README.md")
	if n := len(strings.Fields(readme)); n > 900 {
		t.Errorf("README.md has %d words, at most 900 are allowed; move details to docs/", n)
	}
	navigation := read(t, "mkdocs.yml")
	for _, page := range tracked(t, "docs/*.md") {
		if !regexp.MustCompile(`(?m)[:-] ` + regexp.QuoteMeta(page) + `$`).MatchString(navigation) {
			t.Errorf("the navigation of mkdocs.yml has no line for %s", page)
		}
	}
}

// TestTablesAreWhole: a table of a document begins with a heading and its rule; a blank line within a table would end it there.
func TestTablesAreWhole(t *testing.T) {
	t.Parallel()
	for _, name := range tracked(t, "*.md") {
		lines := strings.Split(prose(read(t, name)), "\n")
		for i, line := range lines {
			begins := strings.HasPrefix(line, "|") && (i == 0 || !strings.HasPrefix(lines[i-1], "|"))
			if begins && !strings.HasPrefix(lines[i+1], "|-") && !strings.HasPrefix(lines[i+1], "| :-") && !strings.HasPrefix(lines[i+1], "| -") {
				t.Errorf("%s:%d: a row of a table without a heading", name, i+1)
			}
		}
	}
}

// The change log has a section for the version of the program.
func TestChangelogHasVersion(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), ddiff(t), "version").Output()
	must(t, err)
	m := regexp.MustCompile(`^ddiff (\d+\.\d+\.\d+)[ +-]`).FindStringSubmatch(string(out))
	if m == nil {
		t.Fatalf("`ddiff version` begins with no version:\n%s", out)
	}
	section := regexp.MustCompile(`(?m)^## \[` + regexp.QuoteMeta(m[1]) + `\] - (unreleased|\d{4}-\d\d-\d\d)$`)
	if !section.MatchString(read(t, "CHANGELOG.md")) {
		t.Errorf("CHANGELOG.md has no section like `## [%s] - unreleased`", m[1])
	}
}

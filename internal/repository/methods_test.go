package repository

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"ddiff/restore/method"
)

// methodSections returns the sections of docs/methods.md by the methods that their first paragraphs name, as in "Method `ddiff`:".
func methodSections(t *testing.T, page string) map[string]string {
	t.Helper()
	heads := regexp.MustCompile("(?m)^Methods? ((?:`\\w+`(?:, | and )?)+): ")
	name := regexp.MustCompile("`(\\w+)`")
	out := map[string]string{}
	for _, section := range strings.Split(page, "\n## ")[1:] {
		if strings.HasPrefix(section, "Comparison\n") {
			continue
		}
		head := heads.FindStringSubmatch(section)
		if head == nil {
			heading, _, _ := strings.Cut(section, "\n")
			t.Errorf("section %q names no method", heading)
			continue
		}
		for _, m := range name.FindAllStringSubmatch(head[1], -1) {
			if out[m[1]] != "" {
				t.Errorf("two sections describe %s", m[1])
			}
			out[m[1]] = section
		}
	}
	return out
}

// The page of the methods has one section for each method of the program, which names its parameters and no other method.
func TestMethodsPage(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/methods.md")
	sections := methodSections(t, page)
	for _, info := range method.Builtin().Infos() {
		section, ok := sections[info.Name]
		delete(sections, info.Name)
		if !ok {
			t.Errorf("docs/methods.md has no section with the line \"Method `%s`: CITATION\"", info.Name)
			continue
		}
		for _, p := range info.Parameters {
			if !strings.Contains(section, "`"+p.Name+"`") {
				t.Errorf("docs/methods.md: the section of %s does not name the parameter `%s`", info.Name, p.Name)
			}
			for _, word := range p.Choices {
				if !strings.Contains(page, "`"+word+"`") {
					t.Errorf("docs/methods.md does not name `%s`, a value of %s", word, p.Name)
				}
			}
		}
	}
	for name := range sections {
		t.Errorf("docs/methods.md describes %s, which is no method", name)
	}
}

// Each method of the program is in the table of docs/tasks-and-methods.md, and that table names no other.
func TestMethodsTable(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/tasks-and-methods.md")
	_, table, _ := strings.Cut(page, "\n| method | algorithm |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var named []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(table, -1) {
		named = append(named, m[1])
	}
	if want := method.Builtin().Names(); !slices.Equal(named, want) {
		t.Errorf("the table names %v, want the methods in the program's order %v", named, want)
	}
}

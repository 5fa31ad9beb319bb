package repository

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"ddiff/restore/method"
)

// methodPages returns the pages below docs/methods by the methods that their first paragraphs name, as in "Method `ddiff`:". A page has
// the name of its first method.
func methodPages(t *testing.T) map[string]string {
	t.Helper()
	heads := regexp.MustCompile("(?m)^Methods? ((?:`\\w+`(?:, | and )?)+): ")
	name := regexp.MustCompile("`(\\w+)`")
	out := map[string]string{}
	for _, document := range tracked(t, "docs/methods/*.md") {
		page := read(t, document)
		head := heads.FindStringSubmatch(page)
		if head == nil {
			t.Errorf("%s names no method", document)
			continue
		}
		named := name.FindAllStringSubmatch(head[1], -1)
		if want := "docs/methods/" + named[0][1] + ".md"; document != want {
			t.Errorf("%s describes %s, want the file %s", document, named[0][1], want)
		}
		for _, m := range named {
			if out[m[1]] != "" {
				t.Errorf("two pages describe %s", m[1])
			}
			out[m[1]] = page
		}
	}
	return out
}

// Each method of the program has a page, which names its parameters, and no page describes another method.
func TestMethodsPage(t *testing.T) {
	t.Parallel()
	pages := methodPages(t)
	var all strings.Builder
	for _, page := range pages {
		all.WriteString(page)
	}
	for _, info := range method.Builtin().Infos() {
		page, ok := pages[info.Name]
		delete(pages, info.Name)
		if !ok {
			t.Errorf("docs/methods has no page with the line \"Method `%s`: CITATION\"", info.Name)
			continue
		}
		for _, p := range info.Parameters {
			if !strings.Contains(page, "`"+p.Name+"`") {
				t.Errorf("docs/methods: the page of %s does not name the parameter `%s`", info.Name, p.Name)
			}
			for _, word := range p.Choices {
				if !strings.Contains(all.String(), "`"+word+"`") {
					t.Errorf("docs/methods does not name `%s`, a value of %s", word, p.Name)
				}
			}
		}
	}
	for name := range pages {
		t.Errorf("docs/methods describes %s, which is no method", name)
	}
}

// Each method of the program is in the table of docs/methods.md, and that table names no other. The page links those of all methods.
func TestMethodsTable(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/methods.md")
	_, table, _ := strings.Cut(page, "\n| method | algorithm |")
	table, _, _ = strings.Cut(table, "\n\n")
	var named []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(table, -1) {
		named = append(named, m[1])
	}
	if want := method.Builtin().Names(); !slices.Equal(named, want) {
		t.Errorf("the table names %v, want the methods in the program's order %v", named, want)
	}
	for _, document := range tracked(t, "docs/methods/*.md") {
		if !strings.Contains(table, "("+strings.TrimPrefix(document, "docs/")+")") {
			t.Errorf("the table does not link %s", document)
		}
	}
}

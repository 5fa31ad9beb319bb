// Command size measures the repository: `make size` prints one line with its packages, lines, words and the names that other modules may import, and
// writes the lines and names of each package into the table of docs/architecture.md. Its test checks that table, and that
// each package imports only packages of later rows.
package main

import (
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// page has the table of packages.
const page = "docs/architecture.md"

// house is the measured repository. Lines are lines of files, with blanks and comments, without generated files.
type house struct {
	packages  map[string]*room // by folder
	testLines int              // of files of tests
	words     int              // of Markdown files, but the expected outputs of tests, without numbers and the marks of tables
}

// room is a package: a folder with Go files outside tests.
type room struct {
	lines   int
	names   int             // exported constants, variables, types and functions, without methods; none of a program
	imports map[string]bool // folders of the repository that files outside tests import
	program bool
}

func main() {
	root := flag.String("root", ".", "`folder` of the repository")
	flag.Parse()
	if err := run(context.Background(), *root); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string) error {
	h, err := measure(ctx, root)
	if err != nil {
		return err
	}
	name := filepath.Join(root, page)
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := os.WriteFile(name, []byte(h.fill(string(text))), 0o644); err != nil {
		return err
	}
	fmt.Println(h)
	return nil
}

// measure reads all files of the repository at root that git tracks.
func measure(ctx context.Context, root string) (*house, error) {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "*.go", "*.md")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", root, err)
	}
	h := &house{packages: map[string]*room{}}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(root, name))
		switch {
		case os.IsNotExist(err): // deleted, and not yet committed
		case err != nil:
			return nil, err
		case path.Ext(name) == ".md" && strings.Contains(name, "/testdata/"): // what tests expect
		case path.Ext(name) == ".md":
			h.words += words(string(content))
		default:
			if err := h.add(name, content); err != nil {
				return nil, err
			}
		}
	}
	return h, nil
}

// words counts the words of a text: what has a letter between spaces. Numbers and the marks of tables are none.
func words(text string) int {
	n := 0
	for word := range strings.FieldsSeq(text) {
		if strings.ContainsFunc(word, unicode.IsLetter) {
			n++
		}
	}
	return n
}

// add counts a Go file.
func (h *house) add(name string, content []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	lines := strings.Count(string(content), "\n")
	if strings.HasSuffix(name, "_test.go") {
		h.testLines += lines
		return nil
	}
	dir := path.Dir(name)
	p := h.packages[dir]
	if p == nil {
		p = &room{imports: map[string]bool{}}
		h.packages[dir] = p
	}
	for _, spec := range file.Imports {
		if to, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), "ddiff/"); ok {
			p.imports[to] = true
		}
	}
	if !ast.IsGenerated(file) {
		p.lines += lines
	}
	if file.Name.Name == "main" {
		p.program = true
	} else {
		p.names += exported(file)
	}
	return nil
}

// split returns the lines of the packages that programs contain, and those of packages that only tests import.
func (h *house) split() (programs, tests int) {
	contained := map[string]bool{}
	var visit func(dir string)
	visit = func(dir string) {
		if p := h.packages[dir]; p != nil && !contained[dir] {
			contained[dir] = true
			for to := range p.imports {
				visit(to)
			}
		}
	}
	for dir, p := range h.packages {
		if p.program {
			visit(dir)
		}
	}
	for dir, p := range h.packages {
		if contained[dir] {
			programs += p.lines
		} else {
			tests += p.lines
		}
	}
	return programs, tests
}

// exported counts the exported names that a file declares, without methods.
func exported(file *ast.File) int {
	n := 0
	count := func(names ...*ast.Ident) {
		for _, name := range names {
			if name.IsExported() {
				n++
			}
		}
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				count(d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					count(s.Name)
				case *ast.ValueSpec:
					count(s.Names...)
				}
			}
		}
	}
	return n
}

func (h *house) String() string {
	names := 0
	for dir, p := range h.packages {
		if !strings.HasPrefix(dir, "internal/") && !strings.HasPrefix(dir, "cmd/") {
			names += p.names
		}
	}
	lines, support := h.split()
	return fmt.Sprintf("packages=%d lines=%d test_lines=%d words=%d exported=%d",
		len(h.packages), lines, h.testLines+support, h.words, names)
}

// row is a row of the table: folder, lines, names, purpose.
var row = regexp.MustCompile("(?m)^\\| `([a-z0-9/]+)` \\| *(\\d+) \\| *(\\d+) \\|")

// fill returns the page with the measured lines and names in the rows of its table.
func (h *house) fill(text string) string {
	return row.ReplaceAllStringFunc(text, func(old string) string {
		dir := row.FindStringSubmatch(old)[1]
		p := h.packages[dir]
		if p == nil {
			return old
		}
		return "| `" + dir + "` | " + strconv.Itoa(p.lines) + " | " + strconv.Itoa(p.names) + " |"
	})
}

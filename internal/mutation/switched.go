package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// activeVariable chooses the mutant of a switched package by its number. Without it the package is the original.
const activeVariable = "DDIFF_MUTANT"

// switchFile declares the number of the active mutant.
const switchFile = `package %s

import (
	mutationNumbers "strconv"
	mutationSystem "os"
)

var mutationActive, _ = mutationNumbers.Atoi(mutationSystem.Getenv("` + activeVariable + `"))
`

// buildSwitched builds the tests of a package with many mutants in one program, which saves the build of each mutant. It
// returns the mutants that are in it: index i is number i+1. Constants, types without a name in their file, and operators
// that a type does not have are left out.
func (w *workspace) buildSwitched(ctx context.Context, name string, mutants []mutant, output string) (in []bool, err error) {
	p, err := w.typecheck(ctx, name)
	if err != nil {
		return nil, err
	}
	in = make([]bool, len(mutants))
	folder := filepath.Join(w.tree(), name)
	added := filepath.Join(folder, "mutation_switch.go")
	defer func() { err = errors.Join(err, p.restore(), os.RemoveAll(added)) }()
	for base, f := range p.files {
		sites, err := f.sites(p, base, mutants, in)
		if err != nil {
			return nil, err
		}
		if len(sites) == 0 {
			continue
		}
		if err := os.WriteFile(f.path, []byte(f.render(sites, 0, len(f.text))), 0o644); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(added, fmt.Appendf(nil, switchFile, p.types.Name()), 0o644); err != nil {
		return nil, err
	}
	if _, err := w.build(ctx, name, output); err != nil {
		return nil, err
	}
	return in, nil
}

// together returns the program of each mutant: one program with many mutants, or none if the mutant needs its own. The
// program without a mutant must pass all tests, see checkOriginal.
func (w *workspace) together(ctx context.Context, name string, mutants []mutant, tests []test) []program {
	programs := make([]program, len(mutants))
	binary := filepath.Join(w.folder, "switched.test")
	in, err := w.buildSwitched(ctx, name, mutants, binary)
	if err == nil {
		err = w.checkOriginal(ctx, name, program{binary: binary}, tests)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "each mutant of %s is built alone: %v\n", name, err)
		return programs
	}
	for i := range programs {
		if in[i] {
			programs[i] = program{binary, i + 1}
		}
	}
	return programs
}

// checkOriginal runs all tests without a mutant. Like a test on a mutant, a test that fails runs once more.
func (w *workspace) checkOriginal(ctx context.Context, name string, p program, tests []test) error {
	r, err := w.runTests(ctx, name, p, tests)
	if err != nil || r.passed {
		return err
	}
	var again []test
	for _, match := range failed.FindAllSubmatch(r.output, -1) {
		if i := slices.IndexFunc(tests, func(t test) bool { return t.name == string(match[1]) }); i >= 0 {
			again = append(again, tests[i])
		}
	}
	if len(again) > 0 && !r.late {
		if second, err := w.runTests(ctx, name, p, again); err != nil || second.passed {
			return err
		}
	}
	return fmt.Errorf("tests fail without a mutant: %s", bytes.TrimSpace(r.output))
}

// typed is a package with its types.
type typed struct {
	set   *token.FileSet
	types *types.Package
	info  *types.Info
	files map[string]*typedFile // by base name
}

type typedFile struct {
	path   string
	text   []byte
	syntax *ast.File
}

func (p *typed) restore() error {
	var err error
	for _, f := range p.files {
		err = errors.Join(err, os.WriteFile(f.path, f.text, 0o644))
	}
	return err
}

// typecheck reads the source of a package with the types of the compiler's export data.
func (w *workspace) typecheck(ctx context.Context, name string) (*typed, error) {
	command := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-json=ImportPath,Export,GoFiles,Dir,DepOnly", "./"+name)
	command.Dir = w.tree()
	command.Env = append(os.Environ(), "GOCACHE="+w.cache)
	var problems bytes.Buffer
	command.Stderr = &problems
	list, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, problems.Bytes())
	}
	exports := map[string]string{}
	p := &typed{
		set: token.NewFileSet(), files: map[string]*typedFile{},
		info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Implicits: map[ast.Node]types.Object{}},
	}
	var syntax []*ast.File
	path := ""
	for decoder := json.NewDecoder(bytes.NewReader(list)); ; {
		var entry struct {
			ImportPath, Export, Dir string
			GoFiles                 []string
			DepOnly                 bool
		}
		if err := decoder.Decode(&entry); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		exports[entry.ImportPath] = entry.Export
		if entry.DepOnly {
			continue
		}
		path = entry.ImportPath
		for _, base := range entry.GoFiles {
			f := &typedFile{path: filepath.Join(entry.Dir, base)}
			if f.text, err = os.ReadFile(f.path); err != nil {
				return nil, err
			}
			if f.syntax, err = parser.ParseFile(p.set, f.path, f.text, parser.SkipObjectResolution); err != nil {
				return nil, err
			}
			p.files[base], syntax = f, append(syntax, f.syntax)
		}
	}
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	checker := types.Config{Importer: importer.ForCompiler(p.set, "gc", lookup)}
	if p.types, err = checker.Check(path, p.set, syntax, p.info); err != nil {
		return nil, fmt.Errorf("check the types of %s: %w", name, err)
	}
	return p, nil
}

// A site is an operator with its mutants.
type site struct {
	begin, end        int // of the expression or statement
	operator, follows int // the operator's bytes
	result            string
	numbers           []int
	operators         []string
}

// sites returns the operators of a file whose mutants fit into the program, outer ones first.
func (f *typedFile) sites(p *typed, base string, mutants []mutant, in []bool) ([]*site, error) {
	at := map[position]*site{}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		var operator token.Pos
		var text string
		s := &site{}
		switch n := n.(type) {
		case *ast.BinaryExpr:
			operator, text = n.OpPos, n.Op.String()
		case *ast.UnaryExpr:
			operator, text = n.OpPos, n.Op.String()
		case *ast.IncDecStmt:
			operator, text = n.TokPos, n.Tok.String()
		default:
			return true
		}
		if e, ok := n.(ast.Expr); ok {
			known := p.info.Types[e]
			if known.Value != nil || known.Type == nil {
				return true
			}
			if s.result = p.typeName(f, known.Type); s.result == "" {
				return true
			}
		}
		offset := func(at token.Pos) int { return p.set.Position(at).Offset }
		s.begin, s.end, s.operator = offset(n.Pos()), offset(n.End()), offset(operator)
		s.follows = s.operator + len(text)
		q := p.set.Position(operator)
		at[position{q.Line, q.Column}] = s
		return true
	})
	for i, m := range mutants {
		s := at[position{m.line, m.column}]
		if m.file != base || s == nil || m.source == "" {
			continue
		}
		mutated, err := parsedOperator(m)
		if err != nil {
			return nil, err
		}
		if mutated == "" || !p.fits(f, s, mutated) {
			continue
		}
		in[i] = true
		s.numbers, s.operators = append(s.numbers, i+1), append(s.operators, mutated)
	}
	var sites []*site
	for _, s := range at {
		if len(s.numbers) > 0 {
			sites = append(sites, s)
		}
	}
	slices.SortFunc(sites, func(a, b *site) int { return 2*(a.begin-b.begin) + min(1, max(-1, b.end-a.end)) })
	return sites, nil
}

// parsedOperator returns the operator of a mutant's source, empty if it has none there.
func parsedOperator(m mutant) (string, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, m.source, nil, parser.SkipObjectResolution)
	if err != nil {
		return "", fmt.Errorf("read the mutant %s: %w", m, err)
	}
	found := ""
	ast.Inspect(file, func(n ast.Node) bool {
		is := func(at token.Pos) bool { q := set.Position(at); return q.Line == m.line && q.Column == m.column }
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if is(n.OpPos) {
				found = n.Op.String()
			}
		case *ast.UnaryExpr:
			if is(n.OpPos) {
				found = n.Op.String()
			}
		case *ast.IncDecStmt:
			if is(n.TokPos) {
				found = n.Tok.String()
			}
		}
		return true
	})
	return found, nil
}

// fits reports whether a mutant compiles.
func (p *typed) fits(f *typedFile, s *site, operator string) bool {
	if s.result == "" {
		return true
	}
	mutated := string(f.text[s.begin:s.operator]) + operator + string(f.text[s.follows:s.end])
	_, err := types.Eval(p.set, p.types, p.set.File(f.syntax.Pos()).Pos(s.begin), mutated)
	return err == nil
}

// typeName returns a type as the file names it, empty if it cannot.
func (p *typed) typeName(f *typedFile, t types.Type) string {
	known := true
	if basic, ok := t.(*types.Basic); ok && basic.Info()&types.IsUntyped != 0 {
		t = types.Default(t)
	}
	text := types.TypeString(t, func(other *types.Package) string {
		if other == p.types {
			return ""
		}
		for _, spec := range f.syntax.Imports {
			if strings.Trim(spec.Path.Value, `"`) != other.Path() {
				continue
			}
			if spec.Name != nil {
				return spec.Name.Name
			}
			return other.Name()
		}
		known = false
		return other.Name()
	})
	if !known {
		return ""
	}
	return text
}

// render returns a part of a file in which the active mutant is chosen. Only one mutant is active, so the operands of a
// mutant are the original ones.
func (f *typedFile) render(sites []*site, begin, end int) string {
	var out strings.Builder
	for i := 0; i < len(sites); {
		s := sites[i]
		inner := i + 1
		for inner < len(sites) && sites[inner].begin < s.end {
			inner++
		}
		out.Write(f.text[begin:s.begin])
		out.WriteString(f.choose(s, sites[i+1:inner]))
		begin, i = s.end, inner
	}
	out.Write(f.text[begin:end])
	return out.String()
}

func (f *typedFile) choose(s *site, inner []*site) string {
	var out strings.Builder
	word := "return "
	if s.result == "" {
		word = ""
	}
	fmt.Fprintf(&out, "func() %s { switch mutationActive { ", s.result)
	for i, number := range s.numbers {
		fmt.Fprintf(&out, "case %d: %s%s%s%s; ", number, word, f.text[s.begin:s.operator], s.operators[i], f.text[s.follows:s.end])
	}
	fmt.Fprintf(&out, "default: %s%s } ", word, f.render(inner, s.begin, s.end))
	out.WriteString("}()")
	return out.String()
}

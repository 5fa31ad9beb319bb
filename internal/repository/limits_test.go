package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"
)

// TestLimits: the numbers by which photographs and their restorations are judged are in one file, where each has its reason: a comment at its name or above its group.
func TestLimits(t *testing.T) {
	t.Parallel()
	const table = "internal/restore/photograph/limits.go"
	limits := 0
	for _, name := range tracked(t, "internal/restore/photograph/*.go", "internal/restore/job/*.go") {
		if strings.HasSuffix(name, "_test.go") || path.Base(name) == "memory.go" { // which has shares of the memory
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path.Base(name), read(t, name), parser.ParseComments|parser.SkipObjectResolution)
		must(t, err)
		for _, decl := range file.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			commented := g.Doc != nil
			for _, spec := range g.Specs {
				s := spec.(*ast.ValueSpec)
				if commented = commented || s.Doc != nil; name == table && !commented {
					t.Errorf("%s: %s has no reason", name, s.Names[0])
				}
				for i, value := range s.Values {
					if name == table {
						limits++
					} else if v, ok := value.(*ast.BasicLit); ok && v.Kind == token.FLOAT {
						t.Errorf("%s: %s = %s belongs to %s", name, s.Names[i], v.Value, table)
					}
				}
			}
		}
	}
	if limits < 100 {
		t.Errorf("%s has %d numbers", table, limits)
	}
}

package repository

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// Every package has exactly one package comment.
func TestPackageComments(t *testing.T) {
	t.Parallel()
	packages := map[string]string{} // folder -> name
	documented := map[string][]string{}
	for _, s := range sources(t) {
		packages[s.dir] = s.file.Name.Name
		if s.file.Doc == nil {
			continue
		}
		documented[s.dir] = append(documented[s.dir], s.name)
		want := "Package " + s.file.Name.Name + " "
		if s.file.Name.Name == "main" {
			want = "Command "
		}
		if !strings.HasPrefix(s.file.Doc.Text(), want) {
			t.Errorf("%s: the package comment does not begin with %q", s.name, want)
		}
	}
	for dir, name := range packages {
		if n := len(documented[dir]); n != 1 {
			t.Errorf("%s: package %s has %d package comments %q, want one", dir, name, n, documented[dir])
		}
	}
}

// Every exported name of an importable package has a comment, its own or that of its group.
func TestExportedNamesAreDocumented(t *testing.T) {
	t.Parallel()
	// The interfaces document these methods.
	common := []string{"Error", "Unwrap", "String"}
	for _, s := range sources(t) {
		if s.file.Name.Name == "main" {
			continue
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) && !slices.Contains(common, d.Name.Name) {
					t.Errorf("%s: %s has no comment", s.set.Position(d.Pos()), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, name := range undocumented(d) {
					t.Errorf("%s: %s has no comment", s.set.Position(name.Pos()), name.Name)
				}
			}
		}
	}
}

// exportedReceiver reports whether a function has no receiver or a receiver of an exported type.
func exportedReceiver(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	typ := f.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return t.IsExported()
		default:
			return false
		}
	}
}

// undocumented returns the exported names of a declaration without a comment.
func undocumented(d *ast.GenDecl) []*ast.Ident {
	if d.Tok == token.IMPORT || d.Doc != nil {
		return nil
	}
	var out []*ast.Ident
	for _, spec := range d.Specs {
		var names []*ast.Ident
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Doc == nil && spec.Comment == nil {
				names = []*ast.Ident{spec.Name}
			}
		case *ast.ValueSpec:
			if spec.Doc == nil && spec.Comment == nil {
				names = spec.Names
			}
		}
		for _, n := range names {
			if n.IsExported() {
				out = append(out, n)
			}
		}
	}
	return out
}

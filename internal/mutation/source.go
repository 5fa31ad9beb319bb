package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
)

// A position is that of an operator.
type position struct{ line, column int }

// A place names an operator independently of its line.
type place struct{ function, expression string }

// source is a parsed source file.
type source struct {
	places map[position]place
	// starts are the positions that stand for the operators: coverage profiles have neither the conditions of a case nor
	// the part of a statement behind a function literal. A case has the start of its switch, other operators that of their
	// statement.
	starts map[position]position
}

// reached reports whether the blocks of a test contain an operator or the start of its statement.
func (s *source) reached(blocks []block, operator position) bool {
	start, found := s.starts[operator]
	for _, b := range blocks {
		if b.contains(operator.line, operator.column) || found && b.contains(start.line, start.column) {
			return true
		}
	}
	return false
}

// parseSource reads the operators of a file.
func parseSource(path string) (*source, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, data, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s := &source{places: map[position]place{}, starts: map[position]position{}}
	at := func(p token.Pos) position { q := set.Position(p); return position{q.Line, q.Column} }
	for _, declaration := range file.Decls {
		function := functionName(declaration)
		var path []ast.Node
		ast.Inspect(declaration, func(node ast.Node) bool {
			if node == nil {
				path = path[:len(path)-1]
				return true
			}
			path = append(path, node)
			var operator token.Pos
			switch n := node.(type) {
			case *ast.AssignStmt:
				operator = n.TokPos
			case *ast.BinaryExpr:
				operator = n.OpPos
			case *ast.BranchStmt:
				operator = n.TokPos
			case *ast.IncDecStmt:
				operator = n.TokPos
			case *ast.UnaryExpr:
				operator = n.OpPos
			default:
				return true
			}
			text := data[set.Position(node.Pos()).Offset:set.Position(node.End()).Offset]
			s.places[at(operator)] = place{function, strings.Join(strings.Fields(string(text)), " ")}
			if start := statement(path); start != nil {
				s.starts[at(operator)] = at(start.Pos())
			}
			return true
		})
	}
	return s, nil
}

// statement returns the innermost statement of a path, the switch of a case, or nil.
func statement(path []ast.Node) ast.Node {
	for _, node := range slices.Backward(path) {
		switch n := node.(type) {
		case *ast.CaseClause: // its switch is further out, behind a block
		case *ast.BlockStmt:
		case ast.Stmt:
			return n
		}
	}
	return nil
}

// functionName returns Name, or Type.Name of a method, and an empty text for other declarations.
func functionName(declaration ast.Decl) string {
	f, ok := declaration.(*ast.FuncDecl)
	if !ok {
		return ""
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	for {
		switch r := receiver.(type) {
		case *ast.StarExpr:
			receiver = r.X
		case *ast.IndexExpr:
			receiver = r.X
		case *ast.IndexListExpr:
			receiver = r.X
		case *ast.Ident:
			return r.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
)

// A position is that of an operator.
type position struct{ line, column int }

// A place names an operator independently of its line.
type place struct{ function, expression string }

// source is a parsed source file.
type source struct {
	places   map[position]place
	switches []switchBlocks
}

// switchBlocks are the positions of the conditions of a switch.
type switchBlocks struct {
	line, column int // of the keyword
	conditions   []block
}

// conditions returns the conditions of the switches that are in one of the blocks. Coverage profiles do not have them.
func (s *source) conditions(blocks []block) []block {
	var found []block
	for _, k := range s.switches {
		for _, b := range blocks {
			if b.contains(k.line, k.column) {
				found = append(found, k.conditions...)
				break
			}
		}
	}
	return found
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
	s := &source{places: map[position]place{}}
	at := func(p token.Pos) (int, int) { q := set.Position(p); return q.Line, q.Column }
	for _, declaration := range file.Decls {
		function := functionName(declaration)
		ast.Inspect(declaration, func(node ast.Node) bool {
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
			case *ast.SwitchStmt:
				line, column := at(n.Switch)
				k := switchBlocks{line: line, column: column}
				for _, clause := range n.Body.List {
					for _, condition := range clause.(*ast.CaseClause).List {
						var b block
						b.firstLine, b.firstColumn = at(condition.Pos())
						b.lastLine, b.lastColumn = at(condition.End())
						k.conditions = append(k.conditions, b)
					}
				}
				s.switches = append(s.switches, k)
				return true
			default:
				return true
			}
			line, column := at(operator)
			text := data[set.Position(node.Pos()).Offset:set.Position(node.End()).Offset]
			s.places[position{line, column}] = place{function, strings.Join(strings.Fields(string(text)), " ")}
			return true
		})
	}
	return s, nil
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

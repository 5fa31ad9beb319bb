package manifest

import (
	_ "embed"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"reflect"
	"regexp"
	"strings"

	"ddiff/restore/item"
)

//go:embed spec.go
var specSource string

//go:embed split.go
var splitSource string

//go:embed budget.go
var budgetSource string

// reference matches the name of a declaration in a comment.
var reference = regexp.MustCompile(`\[([A-Z][\w.]*)\]`)

// Comments returns the comments of the types of a campaign file by type and JSON name, such as "Spec.steps", each as one line.
func Comments() map[string]string {
	out := map[string]string{}
	for _, source := range []string{specSource, splitSource, budgetSource, item.TaskSource} {
		file, err := parser.ParseFile(gotoken.NewFileSet(), "", source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			panic("manifest: its own source: " + err.Error())
		}
		ast.Inspect(file, func(n ast.Node) bool {
			named, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			fields, ok := named.Type.(*ast.StructType)
			if !ok {
				return false
			}
			for _, f := range fields.Fields.List {
				if f.Tag == nil {
					continue
				}
				name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
				text := strings.Join(strings.Fields(f.Doc.Text()), " ")
				out[named.Name.Name+"."+name] = reference.ReplaceAllString(text, "$1")
			}
			return false
		})
	}
	return out
}

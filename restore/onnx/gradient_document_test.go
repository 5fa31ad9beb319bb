package onnx_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"ddiff/restore/onnx"
)

var update = flag.Bool("update", false, "write the list of operations into docs/gradients.md")

// docs/gradients.md lists the operations with a rule.
func TestGradientDocument(t *testing.T) {
	t.Parallel()
	const file, begin, end = "../../docs/gradients.md", "-update -->\n", "<!-- end -->"
	data, err := os.ReadFile(file)
	must(t, err)
	families := onnx.RuleFamilies()
	list := "\n| family | operations |\n|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(families)) {
		list += fmt.Sprintf("| %s | %s |\n", name, strings.Join(families[name], ", "))
	}
	before, rest, ok := strings.Cut(string(data), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("the document has no place for the list")
	}
	want := before + begin + list + "\n" + end + after
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	if string(data) != want {
		t.Error("docs/gradients.md is stale: run go test ./restore/onnx -run TestGradientDocument -update")
	}
}

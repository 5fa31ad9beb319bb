package manifest_test

import (
	"strings"
	"testing"

	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

func TestOperatorName(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"/data/My Blur.onnx": "my_blur", "blur-2.onnx": "blur-2", "https://host/a.onnx?sig=x/y": "a", "/Ω.onnx": "operator",
		strings.Repeat("x", 60) + ".onnx": strings.Repeat("x", 40),
	} {
		if got := manifest.OperatorName(file); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}

// TestOperatorIdentity: the bytes of an operator file are part of all identities, its name and place are not. Items without a
// file have the identities that they had before.
func TestOperatorIdentity(t *testing.T) {
	t.Parallel()
	id := func(task string, file *item.Source) string {
		it := item.Item{Task: task, Operator: file, Width: 8, Height: 8}
		if err := it.Identify(); err != nil {
			t.Fatal(err)
		}
		if err := it.CheckID(); err != nil {
			t.Error(err)
		}
		return it.ID
	}
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	own := id("blur", &item.Source{Path: "/x.onnx", SHA256: a})
	if id("other", &item.Source{Path: "/y.onnx", SHA256: a}) != own {
		t.Error("the name or the place of an operator file is in the identity")
	}
	if id("blur", &item.Source{Path: "/x.onnx", SHA256: b}) == own || id("blur", nil) == own {
		t.Error("another operator has the same identity")
	}
}

func TestOperatorFields(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{operator: a.onnx, name: hdr}`:                             "the name of the built-in task hdr",
		`{operator: a.onnx, name: "A b"}`:                           `"A b" is not 1 to 40 characters`,
		`{operator: a.onnx}, {operator: b/a.onnx}`:                  "the name a belongs to two operator files",
		`{operator: "https://u:p@host/a.onnx"}`:                     "contains credentials",
		`{operator: a.onnx, params: {gian: 1}}`:                     `unknown parameter of a "gian" (did you mean "gain"?)`,
		`{operator: a.onnx}, {operator: a.onnx, params: {gain: 2}}`: "",
	} {
		s, err := manifest.Parse("c.yaml", []byte("dataset: {path: x}\ntasks: ["+text+"]\n"), "/base")
		if err == nil {
			err = s.Validate(manifest.Catalogue{
				Operators: operator.Set{{Name: "hdr"}},
				Files:     map[string]*operator.File{"/base/a.onnx": {Parameters: parameter.List{{Name: "gain", Max: 10}}}},
			})
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ddiff/restore/item"
	"ddiff/restore/parameter"
)

const fullSpec = `# a comment
name: Night photos
dataset:
  path: photos
  size: 128
  fit: resize
  limit: 10
  recursive: true
tasks:
  - gaussian_deblur
  - name: super_resolution
    params: {factor: 4, support: 16.5}
    sigma: 0.02
    steps: 100
    solver: {b: 0.5}
methods: [ddiff, hqs]
preset: ffhq
prior: ../priors/faces.onnx
steps: 250
sigma: 1e-2
seed: 18446744073709551615
runs: 3
select: min_misfit
batch: 4
solver:
  gamma0: 50
  t_gamma: 300
  a: 3.3
  b: 0.1
  t0: 0
  sigma_rule: ddpm
  gradient: norm
output: results
attempts: 5
`

// must ends the test with an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ptr[T any](x T) *T { return &x }

// parsed returns the campaign of a file in the folder "/".
func parsed(t *testing.T, text string) *Spec {
	t.Helper()
	s, err := Parse("c.yaml", []byte(text), "/")
	must(t, err)
	return s
}

// validated returns the campaign of a file in the folder "/", or the error of reading or validating it.
func validated(text string, p Catalogue) (*Spec, error) {
	s, err := Parse("c.yaml", []byte(text), "/")
	if err == nil {
		err = s.Validate(p)
	}
	return s, err
}

func TestParseFull(t *testing.T) {
	t.Parallel()
	got, err := Parse("night.yaml", []byte(fullSpec), "/data/campaigns")
	must(t, err)
	want := &Spec{
		Name:    "Night photos",
		Dataset: Dataset{Path: "/data/campaigns/photos", Size: 128, Fit: item.FitResize, Limit: 10, Recursive: true},
		Tasks: []item.Task{
			{Name: "gaussian_deblur"},
			{
				Name: "super_resolution", Params: map[string]float64{"factor": 4, "support": 16.5},
				Sigma: ptr(item.Sigma(0.02)), Steps: 100, Solver: parameter.Values{"b": {Number: 0.5}},
			},
		},
		Methods: []string{"ddiff", "hqs"}, Preset: "ffhq", Prior: "/data/priors/faces.onnx",
		Steps: 250, Sigma: 0.01, Seed: 18446744073709551615, Runs: 3, Select: SelectMinMisfit, Batch: 4,
		Solver: parameter.Values{
			"gamma0": {Number: 50}, "t_gamma": {Number: 300}, "a": {Number: 3.3}, "b": {Number: 0.1}, "t0": {},
			"sigma_rule": {Word: "ddpm"}, "gradient": {Word: "norm"},
		},
		Output: "results", Attempts: 5,
		file: got.file, lines: got.lines,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Parse = %+v\nwant    %+v", got, want)
	}
}

func TestParseDefaults(t *testing.T) {
	t.Parallel()
	got, err := Parse("dir/my demo.yaml", []byte("dataset: {path: /x}\ntasks: [a]\n"), "/base")
	must(t, err)
	want := Default()
	want.Name, want.Dataset.Path, want.Tasks = "my demo", "/x", []item.Task{{Name: "a"}}
	want.file, want.lines = got.file, got.lines
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Parse = %+v\nwant    %+v", got, want)
	}
}

// The JSON form is what a coordinator stores; it must mean the same campaign.
func TestParseOwnJSON(t *testing.T) {
	t.Parallel()
	first, err := Parse("night.yaml", []byte(fullSpec), "/data/campaigns")
	must(t, err)
	b, err := json.Marshal(first)
	must(t, err)
	second, err := Parse("stored.json", b, "/elsewhere")
	must(t, err)
	if first.ID("") != second.ID("") || second.Output != "results" || second.Batch != 4 || second.Attempts != 5 {
		t.Errorf("%s became %s: %+v", first.ID(""), second.ID(""), second)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	const text = "text (quote what looks like a number or true/false)"
	for _, tc := range []struct{ name, yaml, want string }{
		{"empty", "", "c.yaml: is empty; a campaign needs at least dataset and tasks"},
		{"only a comment", "# nothing\n", "c.yaml: is empty; a campaign needs at least dataset and tasks"},
		{"not a mapping", "- a\n", "c.yaml:1: want a mapping of fields, got a list"},
		{"two documents", "name: a\n---\nname: b\n", "c.yaml:2: a second YAML document starts here; write one campaign per file"},
		{"unknown field", "name: a\nstpes: 3\n", `c.yaml:2: unknown field "stpes" (did you mean "steps"?)`},
		{"unknown nested field", "dataset:\n  pth: x\n", `c.yaml:2: dataset: unknown field "pth" (did you mean "path"?)`},
		{"unknown and far", "dataset:\n  colour: x\n", `c.yaml:2: dataset: unknown field "colour" (valid: columns, fit, kernel, kernel_form, limit, mask, mask_shows, measurement_range, measurements, path, recursive, size)`},
		{"unknown in task", "tasks:\n- {name: a, parms: {}}\n", `c.yaml:2: tasks[0]: unknown field "parms" (did you mean "params"?)`},
		{"merge key", "solver:\n  <<: {a: 1}\n", "c.yaml:2: solver.<<: want a number or a word, got a mapping"},
		{"solver from a list", "solver: {a: [1]}\n", "c.yaml:1: solver.a: want a number or a word, got a list"},
		{"empty word", "solver: {gradient: ''}\n", `c.yaml:1: solver.gradient: want a number or a word, got ""`},
		{"repeated field", "steps: 3\nname: a\nsteps: 4\n", `c.yaml:3: field "steps" is repeated, first on line 1; remove one`},
		{"repeated parameter", "tasks:\n- name: a\n  params: {x: 1, x: 2}\n", `c.yaml:3: tasks[0].params: field "x" is repeated, first on line 3; remove one`},
		{"key is a list", "[a]: 1\n", "c.yaml:1: want a field name, got a list"},
		{"integer", "steps: many\n", `c.yaml:1: steps: want an integer, got "many"`},
		{"integer from a fraction", "steps: 2.5\n", `c.yaml:1: steps: want an integer, got "2.5"`},
		{"octal integer", "steps: 0100\n", `c.yaml:1: steps: "0100" begins with 0, which YAML may read with base 8; remove the 0`},
		{"octal parameter", "tasks:\n- name: super_resolution\n  params: {factor: 010}\n", `c.yaml:3: tasks[0].params.factor: "010" begins with 0, which YAML may read with base 8; remove the 0`},
		{"integer too long", "steps: 99999999999999999999\n", `c.yaml:1: steps: want an integer, got "99999999999999999999"`},
		{"integer from a list", "steps: [1]\n", "c.yaml:1: steps: want an integer, got a list"},
		{"number", "sigma: small\n", `c.yaml:1: sigma: want a number or auto, got "small"`},
		{"number in quotes", "sigma: '0.1'\n", `c.yaml:1: sigma: want a number or auto, got "0.1"`},
		{"negative seed", "seed: -1\n", `c.yaml:1: seed: want an integer from 0 to 18446744073709551615, got "-1"`},
		{"boolean", "dataset: {recursive: 1}\n", `c.yaml:1: dataset.recursive: want true or false, got "1"`},
		{"text from a number", "name: 2024\n", "c.yaml:1: name: want " + text + `, got "2024"`},
		{"text from a mapping", "name: {a: 1}\n", "c.yaml:1: name: want " + text + ", got a mapping"},
		{"long value", "steps: " + strings.Repeat("x", 80) + "\n", `c.yaml:1: steps: want an integer, got "` + strings.Repeat("x", 60) + `..."`},
		{"no value", "name: a\nsteps:\n", "c.yaml:2: steps: has no value; give one or remove the field"},
		{"list without a value", "tasks: [a, ~]\n", "c.yaml:1: tasks[1]: has no value; give one or remove the field"},
		{"list from a name", "tasks: a\n", `c.yaml:1: tasks: want a list, as in [first, second], got "a"`},
		{"dataset from a name", "dataset: photos\n", `c.yaml:1: dataset: want a mapping of fields, got "photos"`},
		{"task from a list", "tasks: [[a]]\n", "c.yaml:1: tasks[0]: want a mapping of fields, got a list"},
		{"method from a number", "methods: [a, 1]\n", "c.yaml:1: methods[1]: want " + text + `, got "1"`},
		{"anchor", "name: &x a\n", "c.yaml:1: name: anchors and aliases are not supported; write the value out"},
		{"alias", "solver: &x {a: 1}\ntasks: [{name: t, solver: *x}]\n", "c.yaml:1: solver: anchors and aliases are not supported; write the value out\n" +
			"c.yaml:2: tasks[0].solver: anchors and aliases are not supported; write the value out"},
		{"alias as parameter", "tasks:\n- name: t\n  params:\n    x: &v 1\n", "c.yaml:4: tasks[0].params.x: anchors and aliases are not supported; write the value out"},
		{"unknown alias", "name: *x\n", "c.yaml: not valid YAML: unknown anchor 'x' referenced"},
		{"tab", "name: a\n\tsteps: 3\n", "c.yaml:2: not valid YAML: found a tab character that violates indentation"},
		{"wrong indentation", "name: a\ndataset:\n  path: x\n steps: 3\n", "c.yaml:4: not valid YAML: did not find expected key"},
		{"open list", "name: a\ntasks: [a, b\nsteps: 3\n", "c.yaml:2: not valid YAML: did not find expected ',' or ']'"},
		{"syntax in a second document", "name: a\n---\n}\n", "c.yaml:3: not valid YAML: did not find expected node content"},
		{"size", "dataset: {size: 7}\n", "c.yaml:1: dataset.size: 7 is out of range, want 8 to 4096"},
		{"fit", "dataset: {fit: centre_crop}\n", `c.yaml:1: dataset.fit: unknown value "centre_crop" (did you mean "center_crop"?)`},
		{"limit", "dataset: {limit: -1}\n", "c.yaml:1: dataset.limit: -1 is out of range, want 0 to 2147483647"},
		{"steps", "steps: 1\n", "c.yaml:1: steps: 1 is out of range, want at least 2, or 0 for the default"},
		{"steps of a task", "tasks:\n- name: a\n- name: b\n  steps: -3\n", "c.yaml:4: tasks[1].steps: -3 is out of range, want at least 2, or 0 for the default"},
		{"sigma", "sigma: 1.5\n", "c.yaml:1: sigma: 1.5 is out of range, want 0 to 1 (in units of y)"},
		{"sigma not a number", "sigma: .nan\n", "c.yaml:1: sigma: NaN is out of range, want 0 to 1 (in units of y)"},
		{"sigma of a task", "tasks: [{name: a, sigma: -.inf}]\n", "c.yaml:1: tasks[0].sigma: -Inf is out of range, want 0 to 1 (in units of y)"},
		{"parameter", "tasks: [{name: a, params: {x: .inf}}]\n", "c.yaml:1: tasks[0].params.x: +Inf is not a finite number"},
		{"runs", "runs: 0\n", "c.yaml:1: runs: 0 is out of range, want 1 to 1000"},
		{"select", "select: best\n", `c.yaml:1: select: unknown value "best" (valid: first, mean, closest_to_noise, min_misfit, best_psnr, best_ssim)`},
		{"batch", "batch: 1025\n", "c.yaml:1: batch: 1025 is out of range, want 0 to 1024"},
		{"pool", "pool: A100\n", `c.yaml:1: pool: "A100" is no name of a pool; want at most 30 characters of a-z, 0-9 and single -, as in a100-spot`},
		{"attempts", "attempts: 0\n", "c.yaml:1: attempts: 0 is out of range, want 1 to 100"},
		{"prior", "prior: ''\n", "c.yaml:1: prior: is empty; give a value or remove the field"},
		{"output", "output: \"\"\n", "c.yaml:1: output: is empty; give a value or remove the field"},
		{"name", "name: ' '\n", "c.yaml:1: name: is empty; give a name or leave it out"},
		{"name with a line break", "name: \"a\\nb\"\n", `c.yaml:1: name: "a\nb" has control characters; remove them`},
		{"long name", "name: " + strings.Repeat("x", 101) + "\n", "c.yaml:1: name: is longer than 100 characters"},
		{"several, in the order of the file", "sigma: 2\nstpes: 3\nruns: x\n", "c.yaml:1: sigma: 2 is out of range, want 0 to 1 (in units of y)\n" +
			"c.yaml:2: unknown field \"stpes\" (did you mean \"steps\"?)\nc.yaml:3: runs: want an integer, got \"x\""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, err := Parse("c.yaml", []byte(tc.yaml), "/base")
			if err == nil {
				t.Fatalf("accepted: %+v", s)
			}
			if err.Error() != tc.want {
				t.Errorf("got:\n%v\nwant:\n%s", err, tc.want)
			}
			var fieldErr *FieldError
			if !errors.As(err, &fieldErr) {
				t.Errorf("%T is not a FieldError", err)
			}
		})
	}
}

func TestParseRefusesLargeFiles(t *testing.T) {
	t.Parallel()
	data := append([]byte("name: a\n"), make([]byte, maxSpecSize)...)
	_, err := Parse("c.yaml", data, "/base")
	want := "c.yaml: is larger than 1 MiB; put long lists of images into a .csv or .jsonl file"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	largest := append([]byte("dataset: {path: x}\ntasks: [a]\n"), bytes.Repeat([]byte("\n"), maxSpecSize)...)[:maxSpecSize]
	if _, err := Parse("c.yaml", largest, "/base"); err != nil {
		t.Errorf("a file of 1 MiB: %v", err)
	}
}

// An error about a field that a flag replaced names the flag.
func TestOverride(t *testing.T) {
	t.Parallel()
	s, err := Parse("c.yaml", []byte("dataset: {path: x}\ntasks: [hdr]\nsteps: 9\nsigma: 0.1\nsolver: {a: 1}\n"), "/base")
	must(t, err)
	s.Override("steps", "--steps")
	s.Override("methods", "--method")
	s.Steps, s.Sigma, s.Methods = 1, 2, []string{"hqs", "ddif"}
	want := "--steps: 1 is out of range, want at least 2, or 0 for the default\n" +
		"--method: unknown method \"ddif\" (did you mean \"ddiff\"?)\nc.yaml:4: sigma: 2 is out of range, want 0 to 1 (in units of y)"
	if err := s.Validate(fullCatalogue()); err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
}

// Both would take very long or very much memory in a parser that expands or recurses.
func TestParseWithstandsBombs(t *testing.T) {
	t.Parallel()
	var aliases strings.Builder
	aliases.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := range 30 {
		name := string(rune('b' + i))
		before := string(rune('b' + i - 1))
		if i == 0 {
			before = "a0"
		}
		aliases.WriteString(name + ": &" + name + " [" + strings.Repeat("*"+before+", ", 9) + "]\n")
	}
	for name, text := range map[string]string{
		"aliases":  aliases.String(),
		"brackets": strings.Repeat("[", maxSpecSize),
		"dashes":   strings.Repeat("- ", maxSpecSize/2),
	} {
		if s, err := Parse("c.yaml", []byte(text), "/base"); err == nil {
			t.Errorf("%s: accepted as %+v", name, s)
		}
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "demo.yaml")
	must(t, os.WriteFile(path, []byte("dataset: {path: images}\nprior: p.onnx\ntasks: [a]\n"), 0o600))
	s, err := Load(path)
	must(t, err)
	if s.Name != "demo" || s.Dataset.Path != filepath.Join(dir, "images") || s.Prior != filepath.Join(dir, "p.onnx") {
		t.Errorf("name %q, dataset %q, prior %q", s.Name, s.Dataset.Path, s.Prior)
	}
	if _, err := Load(filepath.Join(dir, "missing.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Load(dir); err == nil {
		t.Error("a directory was loaded as a campaign")
	}
}

func TestEffective(t *testing.T) {
	t.Parallel()
	s := Default()
	s.Sigma, s.Steps = 0.1, 50
	s.Solver = parameter.Values{"a": {Number: 1}, "b": {Number: 2}, "t0": {Number: 7}, "gradient": {Word: "norm"}}
	got := s.Effective(item.Task{Name: "x", Solver: parameter.Values{"b": {}, "t0": {}, "sigma_rule": {Word: "full"}}})
	want := item.Task{Name: "x", Preset: "natural", Sigma: ptr(item.Sigma(0.1)), Steps: 50, Runs: 1, Solver: parameter.Values{
		"a": {Number: 1}, "b": {}, "t0": {}, "sigma_rule": {Word: "full"}, "gradient": {Word: "norm"},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := s.Effective(item.Task{Sigma: ptr(item.Sigma(0.0)), Steps: 9}); *got.Sigma != 0 || got.Steps != 9 {
		t.Errorf("own settings became sigma %v, steps %d", *got.Sigma, got.Steps)
	}
}

// A null or empty solver parameter of a record is an error, not the number 0.
func TestSolverValueJSON(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"null", `""`, "true", "[1]", "{}"} {
		var s Spec
		if err := json.Unmarshal([]byte(`{"solver":{"a":`+value+`}}`), &s); err == nil {
			t.Errorf("%s: read as %v", value, s.Solver)
		}
	}
}

package repository

import (
	"encoding/csv"
	"encoding/json"
	"go/format"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestRecipes adds the code and the documents of docs/new-method.md, docs/new-task.md and docs/new-metric.md to a copy of the repository, whose rules and
// expected reports hold then. With its defaults, the method restores a picture better than the degraded one, and so does a method that knows nothing of
// the task. A picture of the task has an estimated noise level, and the warning that the task declares. Results, tables, pages and comparisons have the metric.
func TestRecipes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: the test builds and runs the program")
	}
	dir := t.TempDir()
	for _, name := range tracked(t, ".") {
		write(t, dir, name, read(t, name))
	}
	method, task, metric := addRecipe(t, dir, "docs/new-method.md"), addRecipe(t, dir, "docs/new-task.md"), addRecipe(t, dir, "docs/new-metric.md")
	program := filepath.Join(dir, "bin", "ddiff")
	for _, c := range []string{
		// Without optimisation, whose compilation would take longer than the program runs.
		"git init -q", "git add .", "go build -buildvcs=false '-gcflags=ddiff/...=-N -l' '-ldflags=-s -w' -o " + program + " ./cmd/ddiff",
		"go vet ./restore/method ./restore/operator ./internal/restore/metric", "make size golden",
		"go test -vet=off -short ./internal/repository/... ./internal/report/... ./restore/method ./restore/operator ./internal/restore/metric ./cmd/ddiff/lookup",
	} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", c)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", c, err, out)
		}
	}
	if out := run(t, program, "methods"); !strings.Contains(out, "renoise") || !strings.Contains(out, "iterations") {
		t.Errorf("ddiff methods does not show the method:\n%s", out)
	}
	if out := run(t, program, "tasks"); !strings.Contains(out, "vignette") || !strings.Contains(out, "loss") {
		t.Errorf("ddiff tasks does not show the task:\n%s", out)
	}
	// The network once in each of four steps. A twice in each of five iterations, with the Jacobian, and for the curve.
	if got := restoreOne(t, program, t.TempDir(), append(method, "--size", "32", "--steps", "4")); got.Cost.Network != 4 || got.Cost.Operator != 44 {
		t.Errorf("cost %+v, want 4 evaluations and 44 calls of the operator", got.Cost)
	}
	for _, command := range [][]string{method, task} {
		if m := restoreOne(t, program, t.TempDir(), append(command, "--size", "64")).Metrics; !(m.PSNR > m.Degraded) {
			t.Errorf("%s: the restoration has %.2f dB, the degraded image %.2f dB", command, m.PSNR, m.Degraded)
		}
	}
	own := run(t, program, "restore", "examples/images/chelsea.png", "--json", "--task", "vignette", "--sigma", "auto", "--method", "diffpir", "--steps", "2", "--device", "cpu", "--out", t.TempDir())
	for _, part := range []string{`"estimated_sigma":0.`, "the corners have less light"} {
		if !strings.Contains(own, part) {
			t.Errorf("a restored picture of the task lacks %q:\n%s", part, own)
		}
	}
	out := t.TempDir()
	mae := restoreOne(t, program, out, append(metric, "--size", "32", "--steps", "4")).Metrics.MAE
	if !(mae > 0 && mae < 1) {
		t.Errorf("the mean absolute difference is %g", mae)
	}
	has := func(what, text, pattern string) {
		if !regexp.MustCompile(pattern).MatchString(text) {
			t.Errorf("%s lacks %s:\n%.3000s", what, pattern, text)
		}
	}
	file := func(name string) string {
		data, err := os.ReadFile(filepath.Join(out, name))
		must(t, err)
		return string(data)
	}
	table, err := csv.NewReader(strings.NewReader(file("results.csv"))).ReadAll()
	must(t, err)
	column := slices.Index(table[0], "mae")
	if column < 0 || len(table) != 2 || table[1][column] != strconv.FormatFloat(mae, 'g', 6, 64) {
		t.Errorf("results.csv lacks the mean absolute difference %g:\n%s", mae, table)
	}
	has("summary.md", file("summary.md"), `\| MAE \|`)
	has("index.html", file("index.html"), `"mae":\[0\.\d`)
	has("ddiff compare", run(t, program, "compare", out, out, "--metric", "mae"), `MAE`)
	has("ddiff score", run(t, program, "score", out, "--metric", "mae"), `metric=mae@1:png items=1 scored=1`)
	has("ddiff tune", run(t, program, "tune", "--help"), `sharpness,\s+mae,`)
}

// addRecipe adds the file, the line and the documents of a page to the repository in dir, and returns the arguments of the page's command. The
// file has fewer than 80 lines.
func addRecipe(t *testing.T, dir, name string) []string {
	t.Helper()
	page := read(t, name)
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?\n)```").FindAllStringSubmatch(page, -1)
	file := regexp.MustCompile("complete file `([\\w/]+\\.go)`").FindStringSubmatch(page)
	line := regexp.MustCompile("After the line `([^`]+,)` in `([Bb]uiltin)`").FindStringSubmatch(page)
	command := regexp.MustCompile(`(?m)^bin/ddiff (run .*)$`).FindStringSubmatch(page)
	if len(blocks) != 1 || file == nil || line == nil || command == nil {
		t.Fatalf("%s: %d blocks of Go, file %v, line %v, command %v; want one of each", name, len(blocks), file, line, command)
	}
	code := blocks[0][1]
	if n := strings.Count(code, "\n"); n >= 80 {
		t.Errorf("%s has %d lines, want fewer than 80", file[1], n)
	}
	if formatted, err := format.Source([]byte(code)); err != nil || string(formatted) != code {
		t.Errorf("%s is not formatted by gofmt: %v", file[1], err)
	}
	registry := path.Join(path.Dir(file[1]), "set.go")
	set := read(t, registry)
	changed := regexp.MustCompile(`(?s)(func `+line[2]+`\(\) \S+ \{.*?)(\n\t?\t?[)}])`).ReplaceAllString(set, "$1\n\t\t"+line[1]+"$2")
	if changed == set {
		t.Fatalf("%s has no list %s", registry, line[2])
	}
	write(t, dir, file[1], code)
	write(t, dir, registry, changed)
	for _, m := range regexp.MustCompile("(?ms)`(docs/[\\w/-]+\\.md|mkdocs\\.yml)` [^\n]*:\n\n```(?:md|text)\n(.*?\n)```").FindAllStringSubmatch(page, -1) {
		addDocument(t, dir, m[1], m[2])
	}
	return strings.Fields(command[1])
}

// addDocument writes a new page, or appends a row to the list of a page that lists its kind of entries.
func addDocument(t *testing.T, dir, name, text string) {
	t.Helper()
	list := map[string]string{ // the end of it is the place of the text
		"docs/methods.md": `(?m)^\| method \|.*\n(?:\|.*\n)+`, "docs/tasks.md": `(?m)^\| task \|.*\n(?:\|.*\n)+`, "docs/results.md": `(?m)^\| id \|.*\n(?:\|.*\n)+`,
		"mkdocs.yml": `(?m)(?:^.*docs/methods/.*\n)+`,
	}[name]
	if list == "" {
		write(t, dir, name, text)
		return
	}
	page := read(t, name)
	at := regexp.MustCompile(list).FindStringIndex(page)
	if at == nil {
		t.Fatalf("%s has no list that matches %s", name, list)
	}
	write(t, dir, name, page[:at[1]]+text+page[at[1]:])
}

// write writes a file below dir.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	target := filepath.Join(dir, filepath.FromSlash(name))
	must(t, os.MkdirAll(filepath.Dir(target), 0o755))
	must(t, os.WriteFile(target, []byte(text), 0o600))
}

// methodResult is a part of result.json.
type methodResult struct {
	Cost    struct{ Network, Operator int }
	Metrics struct {
		PSNR     float64
		MAE      float64
		Degraded float64 `json:"baseline_psnr"`
	}
}

// restoreOne runs a command for one image into dir, on the CPU without OpenVINO, which would compile for longer than the command runs, and
// returns its result.
func restoreOne(t *testing.T, program, dir string, command []string) (got methodResult) {
	t.Helper()
	out := run(t, program, slices.Concat(command, []string{"--limit", "1", "--device", "cpu", "--out", dir})...)
	results, err := filepath.Glob(filepath.Join(dir, "items", "*", "result.json"))
	if err != nil || len(results) != 1 {
		t.Fatalf("%d results, %v; want 1\n%s", len(results), err, out)
	}
	result, err := os.ReadFile(results[0])
	must(t, err)
	must(t, json.Unmarshal(result, &got))
	return got
}

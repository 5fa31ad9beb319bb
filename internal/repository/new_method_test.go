package repository

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNewMethod: the method of docs/new-method.md has fewer than 80 lines. The program compiles with its file and its line in the
// registry, shows its parameters, and restores a picture with it, which with the defaults is better than the degraded one.
func TestNewMethod(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: the test builds and runs the program")
	}
	page := read(t, "docs/new-method.md")
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?\n)```").FindAllStringSubmatch(page, -1)
	file := regexp.MustCompile("complete file `(restore/method/\\w+\\.go)`").FindStringSubmatch(page)
	line := regexp.MustCompile("After the line `(\\w+\\(\\),)` in `Builtin`").FindStringSubmatch(page)
	command := regexp.MustCompile(`(?m)^bin/ddiff (run .*)$`).FindStringSubmatch(page)
	if len(blocks) != 1 || file == nil || line == nil || command == nil {
		t.Fatalf("%d blocks of Go, file %v, line %v, command %v; want one of each", len(blocks), file, line, command)
	}
	code := blocks[0][1]
	if n := strings.Count(code, "\n"); n >= 80 {
		t.Errorf("the method has %d lines, want fewer than 80", n)
	}

	const registry = "restore/method/set.go"
	set := read(t, registry)
	changed := strings.Replace(set, "return Set{\n", "return Set{\n\t\t"+line[1]+"\n", 1)
	if changed == set {
		t.Fatalf("%s has no list of methods", registry)
	}
	dir := t.TempDir()
	replace := map[string]string{}
	for name, text := range map[string]string{file[1]: code, registry: changed} {
		path := filepath.Join(dir, filepath.Base(name))
		must(t, os.WriteFile(path, []byte(text), 0o600))
		replace[mustAbs(t, filepath.Join(root, name))] = path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	program := filepath.Join(dir, "ddiff")
	build := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./cmd/ddiff")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program with %s: %v\n%s", file[1], err, out)
	}

	if out := run(t, program, "methods"); !strings.Contains(out, "renoise") || !strings.Contains(out, "iterations") {
		t.Errorf("ddiff methods does not show the method:\n%s", out)
	}
	arguments := strings.Fields(command[1])
	// The network once in each of four steps. A twice in each of five iterations, with the Jacobian, and for the curve.
	if got := newMethodResult(t, program, filepath.Join(dir, "short"), append(arguments, "--size", "32", "--steps", "4")); got.Cost.Network != 4 || got.Cost.Operator != 44 {
		t.Errorf("cost %+v, want 4 evaluations and 44 calls of the operator", got.Cost)
	}
	got := newMethodResult(t, program, filepath.Join(dir, "default"), append(arguments, "--size", "64"))
	if m := got.Metrics; !(m.PSNR > m.Degraded) {
		t.Errorf("with its defaults the method reaches %.2f dB, the degraded image has %.2f dB", m.PSNR, m.Degraded)
	}
}

// methodResult is a part of result.json.
type methodResult struct {
	Cost    struct{ Network, Operator int }
	Metrics struct {
		PSNR     float64
		Degraded float64 `json:"baseline_psnr"`
	}
}

// newMethodResult runs a command for one image, and returns its result.
func newMethodResult(t *testing.T, program, dir string, args []string) (got methodResult) {
	t.Helper()
	restore := exec.Command(program, append(args, "--limit", "1", "--out", dir)...)
	restore.Dir = root
	out, err := restore.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", args, err, out)
	}
	results, err := filepath.Glob(filepath.Join(dir, "items", "*", "result.json"))
	if err != nil || len(results) != 1 {
		t.Fatalf("%d results, %v; want 1\n%s", len(results), err, out)
	}
	result, err := os.ReadFile(results[0])
	must(t, err)
	must(t, json.Unmarshal(result, &got))
	return got
}

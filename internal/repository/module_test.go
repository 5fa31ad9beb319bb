package repository

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestModule gives a copy of the repository the path of a module that others can fetch. A second module, which replaces that path by the copy, restores a
// picture with an operator of its own: the example of restore/picture.
func TestModule(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: the test compiles the packages under another path")
	}
	const path = "example.org/lab/ddiff"
	dir := t.TempDir()
	for _, name := range tracked(t, ".", ":!examples", ":!priors") {
		write(t, dir, name, read(t, name))
	}
	in := func(folder string, command ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Dir = folder
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%.3000s", strings.Join(command, " "), err, out)
		}
		return string(out)
	}
	in(dir, "git", "init", "-q")
	in(dir, "git", "add", ".")
	for _, bad := range []string{"", "ddiff", "example.org", "https://example.org/ddiff"} {
		cmd := exec.CommandContext(t.Context(), "bash", "scripts/module.sh", bad)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "is no path of a module") {
			t.Errorf("%q: %v, %s", bad, err, out)
		}
	}
	in(dir, "bash", "scripts/module.sh", path)
	for _, module := range []string{".", "internal/testbed", "internal/deploy", "internal/telemetrytest"} {
		in(filepath.Join(dir, module), "go", "list", "-deps", "-test", "./...") // all imports are there
	}

	user := t.TempDir()
	example := strings.NewReplacer("package picture_test", "package main", "func Example_operator()", "func main()", `"ddiff/`, `"`+path+`/`,
		`"testdata/`, `"`+filepath.ToSlash(filepath.Join(dir, "restore/picture/testdata"))+`/`).Replace(read(t, "restore/picture/example_test.go"))
	write(t, user, "main.go", example)
	write(t, user, "go.mod", strings.Replace(read(t, "go.mod"), "module ddiff\n", "module lab.example/use\n", 1)+"\nrequire "+path+" v0.0.0\n\nreplace "+path+" => "+dir+"\n")
	write(t, user, "go.sum", read(t, "go.sum"))
	// Without optimisation, whose compilation would take longer than the program runs.
	if got := in(user, "go", "run", "-mod=mod", "-gcflags="+path+"/...=-N -l", "."); got != "halved done\n" {
		t.Errorf("the program of a second module prints %q", got)
	}
}

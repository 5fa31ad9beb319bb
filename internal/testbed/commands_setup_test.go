package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// program is the binary under test, root the directory of the product's module.
var program, root string

// build compiles the program once and runs the tests with it.
func build(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "ddiff-test-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a leftover is a temporary file
	ctx := context.Background()
	if root, err = ModuleRoot(ctx); err != nil {
		return 0, err
	}
	if program, err = BuildProgram(ctx, dir); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// commandLimit is the deadline of one command.
const commandLimit = 2 * time.Minute

// ended is a process that has ended.
type ended struct {
	code           int
	stdout, stderr string
}

func (e ended) String() string {
	return fmt.Sprintf("exit code %d\nstdout:\n%s\nstderr:\n%s", e.code, e.stdout, e.stderr)
}

// command prepares the program without any settings of this process's environment.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, args...)
	runtime, err := RuntimeVariable()
	must(t, err)
	cmd.Env = append(Environment(), runtime, "XDG_CACHE_HOME="+t.TempDir())
	return cmd
}

// end runs a command to its end.
func end(t *testing.T, cmd *exec.Cmd) ended {
	t.Helper()
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return ended{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// wantCode checks the exit code.
func wantCode(t *testing.T, e ended, code int) {
	t.Helper()
	if e.code != code {
		t.Fatalf("exit code %d, want %d\n%v", e.code, code, e)
	}
}

// wantMessage checks that one line of stderr has all the parts.
func wantMessage(t *testing.T, e ended, parts ...string) {
	t.Helper()
lines:
	for line := range strings.Lines(e.stderr) {
		for _, p := range parts {
			if !strings.Contains(line, p) {
				continue lines
			}
		}
		return
	}
	t.Errorf("no line of stderr has all of %q\n%v", parts, e)
}

// photographs copies bundled photographs to a new directory.
func photographs(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		write(t, filepath.Join(dir, name+".png"), read(t, photograph(name)))
	}
	return dir
}

func photograph(name string) string { return filepath.Join(root, "examples", "images", name+".png") }

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return data
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	must(t, os.WriteFile(path, data, 0o644))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

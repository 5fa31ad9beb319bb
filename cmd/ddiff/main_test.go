package main_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/internal/restore/onnx/install"
	"ddiff/internal/restore/raster"
)

// program is the binary under test. Cache replaces the user's cache directory.
var program, cache string

// race: the program has the race detector. A race ends it with exit code 66. The flag -race of go test concerns the tests only.
var race = os.Getenv("DDIFF_RACE") != ""

// library finds ONNX Runtime in the user's real cache.
var library = sync.OnceValues(func() (install.Library, error) { return install.Locate(install.LocateOptions{}) })

func TestMain(m *testing.M) {
	code, err := build(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// build builds the program once and runs the tests with it.
func build(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "ddiff-test-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the files are temporary
	// Other users must be able to run it, see asNobody.
	if err := os.Chmod(dir, 0o755); err != nil {
		return 0, err
	}
	program, cache = filepath.Join(dir, "ddiff"), filepath.Join(dir, "cache")
	args := []string{"build", "-o", program}
	if race {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, ".")...).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return m.Run(), nil
}

// limit bounds the time of a process that hangs.
var limit = 5 * time.Minute * time.Duration(map[bool]int{false: 1, true: 2}[race])

// ended is the outcome of a process.
type ended struct {
	code           int
	stdout, stderr string
}

func (e ended) String() string {
	return fmt.Sprintf("exit code %d\nstdout:\n%s\nstderr:\n%s", e.code, e.stdout, e.stderr)
}

// ddiff runs the program to its end.
func ddiff(t *testing.T, args ...string) ended {
	t.Helper()
	return end(t, command(t, args...))
}

// restore is ddiff run with small images and one thread, so that tests can run in parallel. In short mode the test is skipped.
func restore(t *testing.T, args ...string) ended {
	t.Helper()
	skipLong(t)
	return ddiff(t, small(args...)...)
}

// skipLong skips a test that restores images or runs a cluster in short mode: only TestRunOnImages does.
func skipLong(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("restores images or runs a cluster: make test-all")
	}
}

func small(args ...string) []string {
	return append([]string{"run", "--threads", "1", "--size", "64"}, args...)
}

// command returns the program with arguments, and an environment that locates ONNX Runtime.
func command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	lib, err := library()
	must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(environment(), install.EnvVar+"="+lib.Path)
	return cmd
}

// environment is the environment of the tests without variables that configure the program.
func environment() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "OTEL_") && !strings.HasPrefix(e, "DDIFF_") && !strings.HasPrefix(e, "XDG_CACHE_HOME=") {
			env = append(env, e)
		}
	}
	return append(env, "XDG_CACHE_HOME="+cache)
}

// end runs a command to its end.
func end(t *testing.T, cmd *exec.Cmd) ended {
	t.Helper()
	return endBeside(t, cmd, func() {})
}

// endWithPeak also returns the peak of the resident memory in MiB. It reads /proc until the process ends: the peak in
// rusage includes this test's own memory, from which the process was forked.
func endWithPeak(t *testing.T, cmd *exec.Cmd) (e ended, mib int64) {
	t.Helper()
	done, read := make(chan struct{}), make(chan struct{})
	e = endBeside(t, cmd, func() {
		go func() {
			defer close(read)
			mib = watchPeak(cmd.Process.Pid, done)
		}()
	})
	close(done)
	<-read
	return e, mib
}

// endBeside runs a command to its end. It calls started when the process exists.
func endBeside(t *testing.T, cmd *exec.Cmd, started func()) ended {
	t.Helper()
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Start()
	if err == nil {
		started()
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return ended{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// watchPeak returns the last peak of a process's resident memory in MiB before done.
func watchPeak(pid int, done <-chan struct{}) (mib int64) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)); err == nil {
			for line := range strings.Lines(string(data)) {
				if kib, found := strings.CutPrefix(line, "VmHWM:"); found {
					n, _ := strconv.ParseInt(strings.Fields(kib)[0], 10, 64)
					mib = max(mib, n>>10)
				}
			}
		}
		select {
		case <-done:
			return mib
		case <-tick.C:
		}
	}
}

// wantCode checks the exit code.
func wantCode(t *testing.T, e ended, code int) {
	t.Helper()
	if e.code != code {
		t.Fatalf("exit code %d, want %d\n%v", e.code, code, e)
	}
}

// wantMessage checks that one line of stderr contains all parts.
func wantMessage(t *testing.T, e ended, parts ...string) {
	t.Helper()
	if !hasLine(e.stderr, parts) {
		t.Errorf("no line of stderr has all of %q\n%v", parts, e)
	}
}

// refusal is a command that ends with an exit code and one line on stderr, which has the text.
type refusal struct {
	args []string
	code int
	text string
}

// wantRefusals runs commands that begin with the same words.
func wantRefusals(t *testing.T, words []string, refusals []refusal) {
	t.Helper()
	for _, c := range refusals {
		wantRefusal(t, ddiff(t, slices.Concat(words, c.args)...), c.code, c.text)
	}
}

func wantRefusal(t *testing.T, e ended, code int, text string) {
	t.Helper()
	if e.code != code || !strings.HasPrefix(e.stderr, "ddiff: ") || !strings.Contains(e.stderr, text) || strings.Count(e.stderr, "\n") != 1 {
		t.Errorf("want exit code %d and one line with %q\n%v", code, text, e)
	}
}

// wantLine checks that one line of stdout contains all parts.
func wantLine(t *testing.T, e ended, parts ...string) {
	t.Helper()
	if !hasLine(e.stdout, parts) {
		t.Errorf("no line of stdout has all of %q\n%v", parts, e)
	}
}

func hasLine(text string, parts []string) bool {
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) }) {
			return true
		}
	}
	return false
}

// wantCounts checks the last line of stdout.
func wantCounts(t *testing.T, e ended, done, failed, dead int, out string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(e.stdout, "\n"), "\n")
	want := fmt.Sprintf("done=%d failed=%d dead=%d out=%s", done, failed, dead, out)
	if got := lines[len(lines)-1]; got != want {
		t.Fatalf("last line %q, want %q\n%v", got, want, e)
	}
}

// photographs copies bundled photographs to a new directory.
func photographs(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		copyFile(t, photograph(name), filepath.Join(dir, name+".png"))
	}
	return dir
}

// corners writes the first 48 columns and rows of bundled photographs to a new directory.
func corners(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		data, err := raster.EncodePNG(raster.Crop(picture(t, photograph(name)), 48, 48))
		must(t, err)
		write(t, filepath.Join(dir, name+".png"), data)
	}
	return dir
}

func photograph(name string) string {
	return filepath.Join("..", "..", "examples", "images", name+".png")
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	write(t, to, read(t, from))
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return data
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	must(t, os.WriteFile(path, data, 0o644))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

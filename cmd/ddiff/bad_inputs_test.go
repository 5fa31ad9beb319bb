package main_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"ddiff/internal/restore/onnx/install"
)

// badInput is a command with an input that the program refuses, or an item that fails.
type badInput struct {
	name  string
	files map[string][]byte // in the working directory of the command
	args  []string
	env   []string
	code  int
	// parts are in one line of standard error, or of standard output with problems. A restored image is named by its item.
	parts []string
	// failed is the number of items that fail: a line each, and one with their number.
	failed int
	// problems reports that the command prints problems on standard output, as verify does.
	problems bool
	// several permits several lines on standard error, one per problem of a file.
	several bool
	mib     int64 // memory; 0: badInputMiB
}

// The limits of each bad input. The bundled prior alone takes 100 MiB.
const (
	badInputTime = 30 * time.Second
	badInputMiB  = 256
)

// badInputs is the whole suite, in the order of its names.
func badInputs(t *testing.T) []badInput {
	t.Helper()
	all := slices.Concat(
		badCampaigns(), badFlags(), badAddresses(), badEnvironments(), badLists(t), badImages(t), badPictures(t), badArrays(t), badArchives(t), badPriors(t), badGraphs(t), badBundles(t), badResults(t),
	)
	seen := map[string]bool{}
	for _, in := range all {
		if seen[in.name] {
			t.Errorf("two bad inputs have the name %s", in.name)
		}
		seen[in.name] = true
	}
	slices.SortFunc(all, func(a, b badInput) int { return strings.Compare(a.name, b.name) })
	return all
}

// TestBadInputs gives bad inputs to the program: `make bad-inputs` all of them, the tests of the package each tenth,
// DDIFF_BAD_INPUTS=image/ those whose name begins so. Each ends with its exit code and one line, within limits of time and memory, and leaves nothing half-written.
func TestBadInputs(t *testing.T) {
	t.Parallel()
	all := badInputs(t)
	if len(all) < 500 {
		t.Errorf("the suite has %d bad inputs, want 500", len(all))
	}
	switch start := os.Getenv("DDIFF_BAD_INPUTS"); start {
	case "all":
	case "":
		tenth := all[:0:0]
		for i := 0; i < len(all); i += 10 {
			tenth = append(tenth, all[i])
		}
		all = tenth
	default:
		all = slices.DeleteFunc(all, func(in badInput) bool { return !strings.HasPrefix(in.name, start) })
	}
	work, passed, workers := make(chan badInput), atomic.Int64{}, sync.WaitGroup{}
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for in := range work {
				if wrong := in.run(t); len(wrong) > 0 {
					t.Errorf("%s: %s", in.name, strings.Join(wrong, "\n\t"))
				} else {
					passed.Add(1)
				}
			}
		})
	}
	for _, in := range all {
		work <- in
	}
	close(work)
	workers.Wait()
	fmt.Printf("inputs=%d passed=%d\n", len(all), passed.Load())
}

// run runs the command in a new directory and returns all deviations.
func (in badInput) run(t *testing.T) (wrong []string) {
	dir := filepath.Join(t.TempDir(), "w") // a parallel test has a new directory at each call
	if err := os.Mkdir(dir, 0o755); err != nil {
		return []string{err.Error()}
	}
	defer os.RemoveAll(dir) //nolint:errcheck // below TempDir
	for name, data := range in.files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return []string{err.Error()}
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return []string{err.Error()}
		}
	}
	lib, err := library()
	if err != nil {
		return []string{err.Error()}
	}
	ctx, cancel := context.WithTimeout(t.Context(), badInputTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, in.args...)
	cmd.Dir = dir
	cmd.Env = append(append(environment(), install.EnvVar+"="+lib.Path), in.env...)
	e, peak := endWithPeak(t, cmd)
	if ctx.Err() != nil || cmd.ProcessState == nil {
		return []string{fmt.Sprintf("did not end within %v", badInputTime)}
	}
	wrong = append(in.check(e), in.left(dir)...)
	limit := max(in.mib, badInputMiB)
	if peak > limit {
		wrong = append(wrong, fmt.Sprintf("took %d MiB, at most %d MiB expected", peak, limit))
	}
	if len(wrong) > 0 {
		wrong = append(wrong, fmt.Sprintf("%.200q: %.3000s", in.args, e.String()))
	}
	return wrong
}

// check compares the outcome of the command with the expected one.
func (in badInput) check(e ended) (wrong []string) {
	if e.code != in.code {
		wrong = append(wrong, fmt.Sprintf("exit code %d, want %d", e.code, in.code))
	}
	lines := strings.Split(strings.TrimSuffix(e.stderr, "\n"), "\n")
	if want := 1 + in.failed; !in.several && len(lines) != want {
		wrong = append(wrong, fmt.Sprintf("%d lines on standard error, want %d", len(lines), want))
	}
	if in.several && len(lines) > 21 {
		wrong = append(wrong, fmt.Sprintf("%d lines on standard error, at most 21 expected", len(lines)))
	}
	search := lines
	if in.problems {
		search = strings.Split(e.stdout, "\n")
	}
	found := slices.ContainsFunc(search, func(line string) bool {
		return !slices.ContainsFunc(in.parts, func(part string) bool { return !strings.Contains(line, part) })
	})
	if !found {
		wrong = append(wrong, fmt.Sprintf("no line has all of %q", in.parts))
	}
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "ddiff: ") }) {
		wrong = append(wrong, "no line begins with ddiff:")
	}
	for _, line := range slices.Concat(lines, strings.Split(e.stdout, "\n")) {
		wrong = append(wrong, checkLine(line)...)
	}
	return wrong
}

// checkLine returns what is wrong with a line of output.
func checkLine(line string) (wrong []string) {
	if n := utf8.RuneCountInString(line); n > 1100 {
		wrong = append(wrong, fmt.Sprintf("a line of %d characters", n))
	}
	for _, r := range line {
		if !utf8.ValidString(line) || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			wrong = append(wrong, fmt.Sprintf("a line has %q", r))
			break
		}
	}
	for _, trace := range []string{"panic:", "goroutine ", "runtime error", ".go:", "%!", "0xc0", "<nil>", "*errors."} {
		if strings.Contains(line, trace) {
			wrong = append(wrong, fmt.Sprintf("a line has %q", trace))
		}
	}
	seen := ""
	for part := range strings.SplitSeq(line, ": ") { // the same context twice in a row
		if len(part) > 3 && part == seen {
			wrong = append(wrong, fmt.Sprintf("a line repeats %q", part))
		}
		seen = part
	}
	return wrong
}

// left checks that the command wrote nothing but the folder of an output, without items and temporary files.
func (in badInput) left(dir string) (wrong []string) {
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		for given := range in.files {
			if name == given || strings.HasPrefix(given, name+string(filepath.Separator)) {
				return nil
			}
		}
		inOutput := name == "out" || strings.HasPrefix(name, filepath.Join("out", ""))
		switch folder := filepath.Base(filepath.Dir(name)); {
		case name == ".":
		case in.args[0] != "run" || !inOutput || d.Name() == "restored.png" || folder == "items" || folder == ".tmp":
			wrong = append(wrong, "it left "+name)
		}
		return nil
	})
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	return wrong
}

// failing returns the input whose only item fails.
func failing(name string, files map[string][]byte, parts []string, args ...string) badInput {
	return badInput{
		name: name, files: files, code: 3, failed: 1, parts: append([]string{"failed: "}, parts...),
		args: append([]string{"run", "--quiet", "--threads", "1", "--size", "16", "--steps", "3", "--out", "out"}, args...),
	}
}

// refused returns the input of a run that ends before any item.
func refused(name string, files map[string][]byte, code int, parts []string, args ...string) badInput {
	return badInput{
		name: name, files: files, code: code, parts: parts,
		args: append([]string{"run", "--quiet", "--threads", "1", "--size", "16", "--steps", "3", "--out", "out"}, args...),
	}
}

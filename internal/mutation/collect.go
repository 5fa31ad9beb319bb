package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// collectVariable makes this program stand in for the go command of gremlins. Its value is the folder of the mutants.
const collectVariable = "DDIFF_MUTATION_COLLECT"

// notViable is the exit code by which gremlins knows a mutant that cannot be tested.
const notViable = 2

// A mutant is a source file with one changed operator.
type mutant struct {
	folder, file string // the package and the base name
	line, column int
	kind         string // as gremlins calls it: CONDITIONALS_BOUNDARY
	place        place
	source       string // path of the mutated file; empty if no test reaches the operator
	tests        []int  // indices of the tests that reach it
}

func (m mutant) String() string {
	return fmt.Sprintf("%s/%s:%d:%d %s in %s: %s", m.folder, m.file, m.line, m.column, m.kind, m.place.function, m.place.expression)
}

// collect returns the mutants of a package. Gremlins finds and writes them in a module that has only the package's
// source and calls this program as its go command, which copies each mutant and reports that it cannot be tested.
func (w *workspace) collect(ctx context.Context, c config, name string, tests []test) ([]mutant, error) {
	folder := filepath.Join(w.mutants(), strings.ReplaceAll(name, "/", "-"))
	module := filepath.Join(folder, "module")
	files, err := w.prepare(c, name, folder)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(folder, "profile"), mergedProfile(name, tests, files), 0o644); err != nil {
		return nil, err
	}
	report := filepath.Join(folder, "report.json")
	// The duration of the coverage run, a few milliseconds here, times the coefficient is the time limit.
	command := exec.CommandContext(ctx, c.gremlins, "unleash", "--workers=1", "--timeout-coefficient=10000000",
		"--output="+report)
	command.Dir = filepath.Join(module, name)
	command.Env = append(os.Environ(), collectVariable+"="+folder, "PATH="+folder+":"+os.Getenv("PATH"),
		"TMPDIR="+w.temporary())
	if text, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("gremlins: %w: %s", err, text)
	}
	data, err := os.ReadFile(report)
	if err != nil {
		return nil, err
	}
	return readReport(data, name, folder, files, tests)
}

// prepare writes the module of gremlins and its go command, and returns the parsed source files.
func (w *workspace) prepare(c config, name, folder string) (map[string]*source, error) {
	module := filepath.Join(folder, "module")
	if err := os.MkdirAll(filepath.Join(module, name), 0o755); err != nil {
		return nil, err
	}
	if err := copyFile(filepath.Join(w.tree(), "go.mod"), filepath.Join(module, "go.mod"), 0o644); err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := os.Symlink(program, filepath.Join(folder, "go")); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(w.tree(), name))
	if err != nil {
		return nil, err
	}
	files := map[string]*source{}
	for _, entry := range entries {
		base := entry.Name()
		if !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go") || !c.files.MatchString(base) {
			continue
		}
		path := filepath.Join(w.tree(), name, base)
		if err := copyFile(path, filepath.Join(module, name, base), 0o644); err != nil {
			return nil, err
		}
		if files[base], err = parseSource(path); err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no Go file matches %q", c.files)
	}
	return files, nil
}

// mergedProfile writes the operators that any test reaches as a coverage profile.
func mergedProfile(name string, tests []test, files map[string]*source) []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, "mode: set")
	for file, parsed := range files {
		for at := range parsed.places {
			if slices.ContainsFunc(tests, func(t test) bool { return parsed.reached(t.reaches[file], at) }) {
				fmt.Fprintf(&b, "ddiff/%s/%s:%d.%d,%d.%d 1 1\n", name, file, at.line, at.column, at.line, at.column)
			}
		}
	}
	return b.Bytes()
}

// report is the part of the report of gremlins that this program reads.
type report struct {
	Files []struct {
		Name      string `json:"file_name"`
		Mutations []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
			Line   int    `json:"line"`
			Column int    `json:"column"`
		} `json:"mutations"`
	} `json:"files"`
}

// readReport combines the report of gremlins with the copied mutants. With one worker, gremlins lists the mutants of a
// file in the order in which it wrote them.
func readReport(data []byte, name, folder string, files map[string]*source, tests []test) ([]mutant, error) {
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("report of gremlins: %w", err)
	}
	var mutants []mutant
	for _, f := range r.Files {
		base := filepath.Base(f.Name)
		parsed, found := files[base]
		if !found {
			return nil, fmt.Errorf("report of gremlins: unknown file %q", f.Name)
		}
		copies, err := filepath.Glob(filepath.Join(folder, "copies", base, "*"))
		if err != nil {
			return nil, err
		}
		slices.Sort(copies)
		for _, entry := range f.Mutations {
			m := mutant{folder: name, file: base, line: entry.Line, column: entry.Column, kind: strings.ReplaceAll(entry.Type, " ", "_")}
			if m.place, found = parsed.places[position{entry.Line, entry.Column}]; !found {
				return nil, fmt.Errorf("report of gremlins: no operator at %s:%d:%d", base, entry.Line, entry.Column)
			}
			switch entry.Status {
			case "NOT COVERED":
			case "NOT VIABLE":
				if len(copies) == 0 {
					return nil, fmt.Errorf("report of gremlins: %s has more mutants than were written", base)
				}
				m.source, copies = copies[0], copies[1:]
				for i, t := range tests {
					if parsed.reached(t.reaches[base], position{m.line, m.column}) {
						m.tests = append(m.tests, i)
					}
				}
			default:
				return nil, fmt.Errorf("report of gremlins: unexpected status %q of a mutant", entry.Status)
			}
			mutants = append(mutants, m)
		}
		if len(copies) > 0 {
			return nil, fmt.Errorf("report of gremlins: %s has fewer mutants than were written", base)
		}
	}
	return mutants, nil
}

// standIn runs as the go command of gremlins and returns the exit code. It answers a coverage run with the merged
// profile, and copies the mutant of a test run.
func standIn(folder string, arguments []string) int {
	err := answer(folder, arguments)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		return 1
	}
	if slices.Contains(arguments, "-failfast") {
		return notViable
	}
	return 0
}

func answer(folder string, arguments []string) error {
	if i := slices.Index(arguments, "-coverprofile"); i >= 0 && i+1 < len(arguments) {
		return copyFile(filepath.Join(folder, "profile"), arguments[i+1], 0o644)
	}
	if !slices.Contains(arguments, "-failfast") {
		return nil // go mod download
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		return err
	}
	directory, err := os.Getwd()
	if err != nil {
		return err
	}
	for _, entry := range entries {
		mutated, err := os.ReadFile(entry.Name())
		if err != nil {
			return err
		}
		original, err := original(folder, directory, entry.Name())
		if err != nil {
			return err
		}
		if bytes.Equal(mutated, original) {
			continue
		}
		copies := filepath.Join(folder, "copies", entry.Name())
		if err := os.MkdirAll(copies, 0o755); err != nil {
			return err
		}
		before, err := os.ReadDir(copies)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(copies, fmt.Sprintf("%06d.go", len(before))), mutated, 0o644)
	}
	return errors.New("no file of the package is mutated")
}

// original reads the file of the module that gremlins copied to directory, for which the end of the path is equal.
func original(folder, directory, name string) ([]byte, error) {
	module := filepath.Join(folder, "module")
	parts := strings.Split(directory, string(filepath.Separator))
	for i := range parts {
		data, err := os.ReadFile(filepath.Join(append([]string{module}, append(slices.Clone(parts[i:]), name)...)...))
		if !errors.Is(err, fs.ErrNotExist) {
			return data, err
		}
	}
	return nil, fmt.Errorf("no original of %s", name)
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A block is a part of a source file that tests run as a whole, from the first position up to the last one.
type block struct{ firstLine, firstColumn, lastLine, lastColumn int }

func (b block) contains(line, column int) bool {
	if line < b.firstLine || line == b.firstLine && column < b.firstColumn {
		return false
	}
	return line < b.lastLine || line == b.lastLine && column <= b.lastColumn
}

// profile has the blocks that a test runs, by the base name of the file.
type profile map[string][]block

// readProfile parses a coverage profile of the go command and returns the blocks that ran.
func readProfile(data []byte) (profile, error) {
	p := profile{}
	for number, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		if line == "" || strings.HasPrefix(line, "mode: ") {
			continue
		}
		file, rest, found := strings.Cut(line, ".go:")
		fields := strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune("., ", r) })
		if !found || len(fields) != 6 {
			return nil, fmt.Errorf("coverage profile: line %d: %q", number+1, line)
		}
		var values [6]int
		for i, field := range fields {
			value, err := strconv.Atoi(field)
			if err != nil {
				return nil, fmt.Errorf("coverage profile: line %d: %w", number+1, err)
			}
			values[i] = value
		}
		if values[5] > 0 {
			name := filepath.Base(file) + ".go"
			p[name] = append(p[name], block{values[0], values[1], values[2], values[3]})
		}
	}
	return p, nil
}

// A test is a top-level test of a package that passes without a mutation.
type test struct {
	name      string
	reaches   profile
	wall, cpu time.Duration
}

// mapTests runs each test of a package alone, in -short mode, and returns which blocks it reaches. A test that fails
// twice is left out, with a line on standard error.
func (w *workspace) mapTests(ctx context.Context, name string) ([]test, error) {
	binary := filepath.Join(w.folder, "cover.test")
	if _, err := w.build(ctx, name, binary, "-cover", "-covermode=set"); err != nil {
		return nil, err
	}
	if _, err := os.Stat(binary); errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("it has no tests")
	}
	list, err := w.start(ctx, name, program{binary: binary}, limits{wall: time.Minute, cpu: time.Minute}, "-test.list=.")
	if err != nil {
		return nil, err
	}
	var tests []test
	file := filepath.Join(w.folder, "coverage")
	for _, line := range strings.Fields(string(list.output)) {
		if !strings.HasPrefix(line, "Test") && !strings.HasPrefix(line, "Example") && !strings.HasPrefix(line, "Fuzz") {
			continue
		}
		var r result
		for range 2 {
			if err := os.RemoveAll(file); err != nil {
				return nil, err
			}
			r, err = w.start(ctx, name, program{binary: binary}, limits{wall: 10 * time.Minute, cpu: 10 * time.Minute},
				"-test.run=^"+line+"$", "-test.short", "-test.coverprofile="+file)
			if err != nil {
				return nil, err
			}
			if r.passed {
				break
			}
		}
		if !r.passed {
			fmt.Fprintf(os.Stderr, "left out: %s fails without a mutation: %s\n", line, bytes.TrimSpace(r.output))
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		p, err := readProfile(data)
		if err != nil {
			return nil, err
		}
		tests = append(tests, test{name: line, reaches: p, wall: r.wall, cpu: r.cpu})
	}
	if len(tests) == 0 {
		return nil, errors.New("it has no tests that pass")
	}
	return tests, nil
}

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// An equivalent entry names mutants that behave as the original, and which no test can notice. It matches each mutant
// of its kind with this expression in the function.
type equivalent struct {
	File       string // base name
	Function   string // Name, or Type.Name of a method; empty outside functions
	Expression string // the original expression, with single spaces
	Type       string // as gremlins calls it
	Reason     string
}

// equivalents are the entries of a package.
type equivalents struct {
	path    string
	entries []equivalent
}

// readEquivalents reads the list of a package. A package may have none.
func readEquivalents(folder, name string) (equivalents, error) {
	e := equivalents{path: filepath.Join(folder, filepath.FromSlash(name)+".yaml")}
	file, err := os.Open(e.path)
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return e, err
	}
	defer func() { _ = file.Close() }()
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	if err := decoder.Decode(&e.entries); err != nil {
		return e, fmt.Errorf("read %s: %w", e.path, err)
	}
	for i, entry := range e.entries {
		if entry.File == "" || entry.Expression == "" || entry.Type == "" || entry.Reason == "" {
			return e, fmt.Errorf("read %s: entry %d: file, expression, type and reason are required", e.path, i+1)
		}
	}
	return e, nil
}

// remove returns the other mutants and the number of equivalent ones. An entry of a file that files selects, and that
// matches no mutant, is an error: the code has changed, and the entry must change or go.
func (e equivalents) remove(mutants []mutant, files *regexp.Regexp) ([]mutant, int, error) {
	used := make([]bool, len(e.entries))
	var others []mutant
	for _, m := range mutants {
		found := false
		for i, entry := range e.entries {
			if entry.File == m.file && entry.Function == m.place.function && entry.Expression == m.place.expression && entry.Type == m.kind {
				used[i], found = true, true
			}
		}
		if !found {
			others = append(others, m)
		}
	}
	for i, entry := range e.entries {
		if !used[i] && files.MatchString(entry.File) {
			return nil, 0, fmt.Errorf("%s: entry %d matches no mutant: %s in %s of %s: %s; correct or remove it",
				e.path, i+1, entry.Type, entry.Function, entry.File, entry.Expression)
		}
	}
	return others, len(mutants) - len(others), nil
}

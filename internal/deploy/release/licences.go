package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	classifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
)

// component is a part of the program that others have written.
type component struct {
	name    string // path of a module
	version string
	address string // of its source
	texts   map[string]string
	ids     []string // SPDX identifiers of the licences in the texts, sorted
}

// licenceFile matches the names of files with licences and notices.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]es?|copying|copyright|notice|patents|unlicense)([-._].*)?$`)

// accepted returns the licences that a distribution may contain: they demand the text of the licence or the name
// of the author, and MPL-2.0 the place of the source, which the report states.
func accepted() []string {
	return []string{
		"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC-BY-4.0", "CC0-1.0", "FTL", "ISC", "MIT", "MPL-2.0", "OFL-1.1", "Unlicense", "Zlib",
	}
}

// choice is a licence that a module offers among others.
type choice struct{ id, file string }

// choices returns the choice of this project by module.
func choices() map[string]choice {
	return map[string]choice{"github.com/golang/freetype": {"FTL", "licenses/ftl.txt"}}
}

// listedPackage is a package in the output of go list.
type listedPackage struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path string }
	}
}

// collectLicences returns the modules of the program for an architecture, with the licence files of each: those beside its
// packages in the program and in all folders above them. A module without one, or with a licence that is not accepted, is an
// error.
func collectLicences(ctx context.Context, source, arch string) ([]component, error) {
	list, err := outputWith(ctx, source, []string{"CGO_ENABLED=1", "GOOS=linux", "GOARCH=" + arch},
		"go", "list", "-deps", "-json=Dir,Standard,Module", "./cmd/ddiff")
	if err != nil {
		return nil, err
	}
	known, err := assets.DefaultClassifier()
	if err != nil {
		return nil, fmt.Errorf("load the texts of licences: %w", err)
	}
	modules := map[string]*component{}
	stream := json.NewDecoder(strings.NewReader(list))
	for {
		var p listedPackage
		if err := stream.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read the packages of the program: %w", err)
		}
		if p.Module == nil || p.Module.Main {
			continue
		}
		c := modules[p.Module.Path]
		if c == nil {
			c = &component{
				name: p.Module.Path, version: p.Module.Version, address: "https://pkg.go.dev/" + p.Module.Path + "@" + p.Module.Version,
				texts: map[string]string{},
			}
			modules[p.Module.Path] = c
		}
		err := c.readTexts(p.Module.Dir, p.Dir)
		if err == nil {
			err = c.choose(p.Module.Dir)
		}
		if err != nil {
			return nil, err
		}
	}
	golang, err := standardLibrary(ctx, source)
	if err != nil {
		return nil, err
	}
	modules[golang.name] = golang
	var all []component
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		c := modules[name]
		errs = append(errs, c.classify(known))
		all = append(all, *c)
	}
	return all, errors.Join(errs...)
}

// standardLibrary returns Go's runtime and standard library.
func standardLibrary(ctx context.Context, source string) (*component, error) {
	text, err := output(ctx, source, "go", "env", "GOROOT", "GOVERSION")
	if err != nil {
		return nil, err
	}
	root, version, _ := strings.Cut(text, "\n")
	c := &component{name: "std", version: strings.TrimPrefix(version, "go"), address: "https://go.dev/dl/", texts: map[string]string{}}
	err = c.readTexts(root, root)
	return c, err
}

// readTexts adds the licence files of dir and of the folders above it, up to root.
func (c *component) readTexts(root, dir string) error {
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || !licenceFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
				continue
			}
			name, err := filepath.Rel(root, filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			if c.texts[name] != "" {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			c.texts[name] = string(text)
		}
		if dir == root {
			return nil
		}
		if dir = filepath.Dir(dir); len(dir) < len(root) {
			return fmt.Errorf("package outside of its module %s: %w", root, fs.ErrInvalid)
		}
	}
}

// choose adds the text of the licence that is chosen among several.
func (c *component) choose(root string) error {
	chosen, several := choices()[c.name]
	if !several {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(chosen.file)))
	c.texts[chosen.file], c.ids = string(text), []string{chosen.id}
	return err
}

// classify finds the licences of the texts.
func (c *component) classify(known *classifier.Classifier) error {
	if c.ids != nil {
		return nil // chosen
	}
	found := map[string]bool{}
	for _, text := range c.texts {
		for _, match := range known.Match([]byte(text)).Matches {
			if match.MatchType == "License" {
				found[match.Name] = true
			}
		}
	}
	c.ids = slices.Sorted(maps.Keys(found))
	if len(c.ids) == 0 {
		return fmt.Errorf("%s %s has no known licence among %v", c.name, c.version, slices.Sorted(maps.Keys(c.texts)))
	}
	for _, id := range c.ids {
		if !slices.Contains(accepted(), id) {
			return fmt.Errorf("%s %s has the licence %s, which is not accepted", c.name, c.version, id)
		}
	}
	return nil
}

// writeTexts writes the texts below dir, in a folder for each component.
func (c *component) writeTexts(dir string) error {
	dir = filepath.Join(dir, filepath.FromSlash(c.name)+"@"+c.version)
	for name, text := range c.texts {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	classifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
)

// component is a part of the program that others have written.
type component struct {
	name    string // path of a module, or std
	version string
	texts   map[string]string
	ids     []string // SPDX identifiers of the licences in the texts, sorted
}

// licenceFile matches the names of files with licences and notices.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]es?|copying|copyright|notice|patents|unlicense)([-._].*)?$`)

// freetype offers two licences; this project has chosen that of FreeType, whose file has another place.
const freetype, freetypeID, freetypeFile = "github.com/golang/freetype", "FTL", "licenses/ftl.txt"

// accepted returns the licences that a distribution may contain: they demand the text of the licence or the name
// of the author, and MPL-2.0 the place of the source, which the report states.
func accepted() []string {
	return []string{
		"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC-BY-4.0", "CC0-1.0", "FTL", "ISC", "MIT", "MPL-2.0", "OFL-1.1", "Unlicense", "Zlib",
	}
}

// collectLicences returns the modules of the program for an architecture and Go's standard library, with the licence files of each: those beside
// its packages in the program and in all folders above them. A module without one, or with a licence that is not accepted, is an
// error.
func collectLicences(ctx context.Context, source, arch string) ([]component, error) {
	known, err := assets.DefaultClassifier()
	if err != nil {
		return nil, fmt.Errorf("load the texts of licences: %w", err)
	}
	list := exec.CommandContext(ctx, "go", "list", "-deps", "-json=Dir,Module", "./cmd/ddiff")
	list.Dir, list.Stderr = source, os.Stderr
	list.Env = append(list.Environ(), "CGO_ENABLED=1", "GOOS=linux", "GOARCH="+arch)
	text, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of the program: %w", err)
	}
	modules := map[string]*component{}
	for stream := json.NewDecoder(bytes.NewReader(text)); ; {
		var p struct {
			Dir    string
			Module *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
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
			c = &component{name: p.Module.Path, version: p.Module.Version, texts: map[string]string{}}
			modules[c.name] = c
		}
		if err := c.readTexts(p.Module.Dir, p.Dir); err != nil {
			return nil, err
		}
	}
	text, err = exec.CommandContext(ctx, "go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, fmt.Errorf("find the standard library: %w", err)
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	std := &component{name: "std", version: strings.TrimPrefix(version, "go"), texts: map[string]string{}}
	modules[std.name] = std
	errs := []error{std.readTexts(root, root)}
	var all []component
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		errs = append(errs, modules[name].classify(known))
		all = append(all, *modules[name])
	}
	return all, errors.Join(errs...)
}

// readTexts adds the licence files of dir and of the folders above it, up to the root of the module.
func (c *component) readTexts(root, dir string) error {
	for ; strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || !licenceFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
				continue
			}
			if err := c.readText(root, filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if c.name == freetype {
		return c.readText(root, filepath.Join(root, filepath.FromSlash(freetypeFile)))
	}
	return nil
}

func (c *component) readText(root, file string) error {
	name, err := filepath.Rel(root, file)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	c.texts[name] = string(text)
	return err
}

// classify finds the licences of the texts.
func (c *component) classify(known *classifier.Classifier) error {
	if c.name == freetype {
		c.ids = []string{freetypeID}
		return nil
	}
	for _, text := range c.texts {
		for _, match := range known.Match([]byte(text)).Matches {
			if match.MatchType == "License" && !slices.Contains(c.ids, match.Name) {
				c.ids = append(c.ids, match.Name)
			}
		}
	}
	slices.Sort(c.ids)
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
	for name, text := range c.texts {
		if err := put(filepath.Join(dir, filepath.FromSlash(c.name)+"@"+c.version, name), text); err != nil {
			return err
		}
	}
	return nil
}

// put writes a file and the folders above it.
func put(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// place copies a file.
func place(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return put(to, string(text))
}

package repository

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Git tracks no program, and no large file except priors.
func TestNoBuiltFiles(t *testing.T) {
	t.Parallel()
	const maxBytes = 1 << 20
	for _, name := range tracked(t, ".") {
		if name == "restore/prior/bundled/prior.onnx" || name == "priors/text.onnx" {
			continue
		}
		content := read(t, name)
		if len(content) > maxBytes || strings.HasPrefix(content, "\x7fELF") {
			t.Errorf("%s: %d bytes, want a source file of at most %d; remove it and add it to .gitignore", name, len(content), maxBytes)
		}
	}
}

// The name of a file or folder describes its content.
func TestNoJunkDrawers(t *testing.T) {
	t.Parallel()
	junk := []string{"util", "utils", "helper", "helpers", "common", "misc", "shared", "base"}
	for _, name := range tracked(t, "*.go", "*.py") {
		for part := range strings.SplitSeq(name, "/") {
			stem := strings.TrimSuffix(strings.TrimSuffix(part, path.Ext(part)), "_test")
			if slices.Contains(junk, stem) {
				t.Errorf("%s: %q names nothing; name it after what it holds", name, part)
			}
		}
	}
}

// No file names a path of one machine or a host of one network: the environment provides both.
func TestNoForeignPlaces(t *testing.T) {
	t.Parallel()
	// The expressions are split so that they do not match themselves.
	foreign := regexp.MustCompile(strings.Join([]string{
		`/ho` + `me/[a-z]`, `/Use` + `rs/[A-Za-z]`, `(^|[^\w.$/}])/ro` + `ot/`, `(^|[^\w.$/}])/wo` + `rk/`,
		`proxy\.gol` + `ang\.org`, `sum\.gol` + `ang\.org`, `registry\.np` + `mjs`, `repo\d?\.ma` + `ven`,
		`pyp` + `i\.org`, `pyth` + `onhosted`, `deb\.deb` + `ian\.org`, `registry-1\.dock` + `er`,
	}, "|"))
	for _, name := range tracked(t) {
		text := read(t, name)
		if strings.Contains(text, "\x00") { // pictures and weights
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			if place := foreign.FindString(line); place != "" {
				t.Errorf("%s:%d: names the foreign place %q", name, i+1, place)
			}
		}
	}
}

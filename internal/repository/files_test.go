package repository

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxLines is the length of a file that a person still reads in one go.
const maxLines = 400

func TestFilesAreShort(t *testing.T) {
	t.Parallel()
	for _, name := range tracked(t, "*.go") {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".pb.go") {
			continue
		}
		if n := strings.Count(read(t, name), "\n"); n > maxLines {
			t.Errorf("%s has %d lines, at most %d are allowed; give each type or algorithm its file", name, n, maxLines)
		}
	}
}

// A file or folder is named after what is in it.
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

// What belongs to one machine or one network is in no file: everything is found through the
// environment of the person who runs it.
func TestNoForeignPlaces(t *testing.T) {
	t.Parallel()
	// The expressions are cut up so that they do not find themselves.
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

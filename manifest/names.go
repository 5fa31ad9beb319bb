package manifest

import (
	"errors"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"strings"
	"unicode"
)

// namesKept is the number of rows whose names are stored for comparison: 2 MiB of hashes.
const namesKept = 1 << 16

// namer makes names unique by appending -2, -3, ... It stores 64-bit hashes of names; a collision only
// adds an unnecessary number.
type namer map[uint64]int

func (n namer) unique(name string) string {
	name = printable(name)
	first := nameHash(name)
	candidate, key := name, first
	for n[key] > 0 {
		n[first]++
		candidate = fmt.Sprintf("%s-%d", name, n[first])
		key = nameHash(candidate)
	}
	n[key]++
	return candidate
}

// numbered makes the name of a row beyond namesKept unique by the row's number. The number is unique
// among such names, and stored names are checked.
func (n namer) numbered(name string, row int) string {
	suffix := fmt.Sprintf("-%d", row)
	name = printable(name) + suffix
	for n[nameHash(name)] > 0 {
		name += suffix
	}
	return name
}

func nameHash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s)) // never fails
	return h.Sum64()
}

// printable replaces characters that would break a line or a JSON string.
func printable(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '\uFFFD'
		}
		return r
	}, name)
}

// stem returns a path without its extension.
func stem(path string) string {
	return strings.TrimSuffix(path, filepath.Ext(path))
}

// stems removes the extensions of paths, except from paths that would collide.
func stems(paths []string) []string {
	taken := make(map[string]int, 2*len(paths))
	for _, p := range paths {
		taken[p]++
		taken[stem(p)]++
	}
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = p
		if taken[stem(p)] == 1 {
			out[i] = stem(p)
		}
	}
	return out
}

// checkName accepts the names of campaigns and rows.
func checkName(name string) error {
	const longest = 100
	switch {
	case strings.TrimSpace(name) == "":
		return errors.New("is empty; give a name or leave it out")
	case len([]rune(name)) > longest:
		return fmt.Errorf("is longer than %d characters", longest)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%q has control characters; remove them", name)
	}
	return nil
}

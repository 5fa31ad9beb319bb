package dataset

import (
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"

	"ddiff/manifest"
)

// maxExpanded limits the number of paths that the braces of a path expand to.
const maxExpanded = 100_000

// braces matches {a,b} or {000..031} in a path.
var braces = regexp.MustCompile(`\{([^{}]*(?:,[^{}]*)+|-?\d+\.\.-?\d+)\}`)

// expand expands braces as a shell does: {000..031} counts, with leading zeros if a bound has them, and {a,b} lists. A
// path with manifest.LocalPrefix is not expanded.
func expand(path string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		n := 0
		err := expandTo(path, func(p string) error {
			if n++; n > maxExpanded {
				return fmt.Errorf("%w: braces of dataset.path expand to more than %d paths", manifest.ErrNoDataset, maxExpanded)
			}
			if !yield(p, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && err != errStop { //nolint:errorlint // never wrapped
			yield("", err)
		}
	}
}

func expandTo(path string, emit func(string) error) error {
	at := braces.FindStringSubmatchIndex(path)
	if at == nil || strings.HasPrefix(path, manifest.LocalPrefix) {
		return emit(path)
	}
	before, inner, after := path[:at[0]], path[at[2]:at[3]], path[at[1]:]
	from, to, counted := strings.Cut(inner, "..")
	if !counted || strings.Contains(inner, ",") {
		for choice := range strings.SplitSeq(inner, ",") {
			if err := expandTo(before+choice+after, emit); err != nil {
				return err
			}
		}
		return nil
	}
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	if err1 != nil || err2 != nil || first < 0 || last < first {
		return fmt.Errorf("%w: {%s} in dataset.path does not count up", manifest.ErrNoDataset, inner)
	}
	width := 0
	if strings.HasPrefix(from, "0") || strings.HasPrefix(to, "0") {
		width = max(len(from), len(to))
	}
	for i := first; i <= last; i++ {
		if err := expandTo(fmt.Sprintf("%s%0*d%s", before, width, i, after), emit); err != nil {
			return err
		}
	}
	return nil
}

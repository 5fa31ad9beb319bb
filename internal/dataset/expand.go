package dataset

import (
	"fmt"
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
func expand(path string) ([]string, error) {
	at := braces.FindStringSubmatchIndex(path)
	if at == nil || strings.HasPrefix(path, manifest.LocalPrefix) {
		return []string{path}, nil
	}
	inner := path[at[2]:at[3]]
	choices := strings.Split(inner, ",")
	if from, to, counted := strings.Cut(inner, ".."); counted && len(choices) == 1 {
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || first < 0 || last < first {
			return nil, fmt.Errorf("%w: {%s} in dataset.path does not count up", manifest.ErrNoDataset, inner)
		}
		width := 0
		if strings.HasPrefix(from, "0") || strings.HasPrefix(to, "0") {
			width = max(len(from), len(to))
		}
		choices = nil
		for i := first; i <= min(last, first+maxExpanded); i++ {
			choices = append(choices, fmt.Sprintf("%0*d", width, i))
		}
	}
	var out []string
	for _, choice := range choices {
		paths, err := expand(path[:at[0]] + choice + path[at[1]:])
		if err != nil {
			return nil, err
		}
		if out = append(out, paths...); len(out) > maxExpanded {
			return nil, fmt.Errorf("%w: braces of dataset.path expand to more than %d paths", manifest.ErrNoDataset, maxExpanded)
		}
	}
	return out, nil
}

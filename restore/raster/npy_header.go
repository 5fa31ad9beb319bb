package raster

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const (
	maxNPYHeader = 10_000 // bytes, NumPy's own limit
	maxRank      = 32     // dimensions
)

// npyHeader is the dictionary at the start of a .npy file.
type npyHeader struct {
	descr   string // type of the values, such as "<f4"
	fortran bool
	shape   []int
}

// npyEntry matches one entry of the header's Python dictionary with the comma or brace after it.
var npyEntry = regexp.MustCompile(`^\s*['"](?:` +
	`(descr)['"]\s*:\s*['"]([^'"]*)['"]|` +
	`(fortran_order)['"]\s*:\s*(True|False)|` +
	`(shape)['"]\s*:\s*\(([^()]*)\)` +
	`)\s*([,}])\s*`)

// parseNPYHeader parses a Python dictionary with exactly the keys descr, fortran_order and shape, in any order.
func parseNPYHeader(text string) (h npyHeader, err error) {
	seen := map[string]bool{}
	rest, open := strings.CutPrefix(strings.TrimSpace(text), "{")
	if !open {
		return h, fmt.Errorf("want a dictionary, have %.12q: %w", text, ErrFormat)
	}
	for open {
		if after, ok := strings.CutPrefix(rest, "}"); ok { // after the last comma
			rest = after
			break
		}
		m := npyEntry.FindStringSubmatch(rest)
		if m == nil {
			return h, fmt.Errorf("want the entry descr, fortran_order or shape at %.24q: %w", rest, ErrFormat)
		}
		key := m[1] + m[3] + m[5]
		if seen[key] {
			return h, fmt.Errorf("key %q occurs twice: %w", key, ErrFormat)
		}
		seen[key] = true
		switch key {
		case "descr":
			h.descr = m[2]
		case "fortran_order":
			h.fortran = m[4] == "True"
		case "shape":
			if h.shape, err = parseTuple(m[6]); err != nil {
				return h, err
			}
		}
		rest, open = rest[len(m[0]):], m[7] == ","
	}
	if rest != "" {
		return h, fmt.Errorf("text after the dictionary: %.12q: %w", rest, ErrFormat)
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return h, fmt.Errorf("key %q is missing: %w", key, ErrFormat)
		}
	}
	return h, nil
}

// parseTuple parses lengths with commas between them and perhaps after the last.
func parseTuple(text string) ([]int, error) {
	shape := []int{}
	text = strings.TrimSuffix(strings.TrimSpace(text), ",")
	if text == "" {
		return shape, nil
	}
	for length := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(length), 10, 63)
		if err != nil {
			return nil, fmt.Errorf("want a length, have %.24q: %w", length, ErrFormat)
		}
		shape = append(shape, int(n))
	}
	if len(shape) > maxRank {
		return nil, fmt.Errorf("%d dimensions, at most %d: %w", len(shape), maxRank, ErrFormat)
	}
	return shape, nil
}

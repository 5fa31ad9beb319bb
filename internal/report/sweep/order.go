package sweep

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Blocks yields the longest parts of a list whose elements have equal keys.
func Blocks[T any, K comparable](list []T, key func(T) K) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for len(list) > 0 {
			n := slices.IndexFunc(list, func(v T) bool { return key(v) != key(list[0]) })
			if n < 0 {
				n = len(list)
			}
			if !yield(list[:n]) {
				return
			}
			list = list[n:]
		}
	}
}

// CompareNatural orders strings and compares runs of digits as numbers: img2 before img10.
func CompareNatural(a, b string) int {
	for x, y := a, b; ; {
		var p, q string
		p, x = chunk(x)
		q, y = chunk(y)
		if p == "" || q == "" {
			return cmp.Or(cmp.Compare(len(p), len(q)), strings.Compare(a, b))
		}
		order := strings.Compare(p, q)
		if isDigit(p[0]) && isDigit(q[0]) {
			p, q = strings.TrimLeft(p, "0"), strings.TrimLeft(q, "0")
			order = cmp.Or(cmp.Compare(len(p), len(q)), strings.Compare(p, q))
		}
		if order != 0 {
			return order
		}
	}
}

// chunk splits off the leading run of digits or of other bytes.
func chunk(s string) (head, rest string) {
	if s == "" {
		return "", ""
	}
	n := 1
	for n < len(s) && isDigit(s[n]) == isDigit(s[0]) {
		n++
	}
	return s[:n], s[n:]
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// Printable replaces line breaks and control characters.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// maxNameLength bounds a name of a file, without its extension and the number that makes it distinct.
const maxNameLength = 100

// FileNames are the names that a report has given to files of one folder.
type FileNames map[string]bool

// Unique makes a name safe as a file name, and distinct. It has ASCII letters, digits and the punctuation.
func (n FileNames) Unique(name, punctuation string) string {
	safe := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(punctuation, r) {
			return r
		}
		return '_'
	}, name)
	safe = safe[:min(len(safe), maxNameLength)]
	unique := safe
	for k := 2; n[unique] || unique == ""; k++ {
		unique = safe + "_" + strconv.Itoa(k)
	}
	n[unique] = true
	return unique
}

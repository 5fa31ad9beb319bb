package sweep

import (
	"strconv"
	"strings"
)

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

package manifest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"net/url"
	"path/filepath"
	"strings"
	"unicode"

	"ddiff/internal/redact"
)

// namer makes names unique by appending -2, -3, ... It stores 64-bit hashes of names, some 30 bytes each; a collision only
// adds an unnecessary number.
type namer map[uint64]uint32

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

// NameOf returns the name of a campaign for the path or address of its dataset: the last element, without its extension and in a valid form.
func NameOf(path string) string {
	path = strings.TrimPrefix(path, LocalPrefix)
	if u, err := url.Parse(path); err == nil && IsAddress(path) {
		path = u.Host + u.Path
	}
	base := filepath.Base(path)
	name := []rune(strings.TrimSpace(printable(cmp.Or(stem(base), base))))
	if len(name) > longestName {
		name = name[:longestName]
	}
	return cmp.Or(string(name), "campaign")
}

// longestName is the greatest length of a name in characters.
const longestName = 100

// checkName accepts the names of campaigns and rows.
func checkName(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return errors.New("is empty; give a name or leave it out")
	case len([]rune(name)) > longestName:
		return fmt.Errorf("is longer than %d characters", longestName)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%q has control characters; remove them", name)
	}
	return nil
}

// errStop ends the reading of a dataset early without an error: at the limit, or after the consumer has stopped.
var errStop = errors.New("stop")

// Number yields the rows that read emits, with Index and unique names: a repeated name gets a number, -2, -3 and so on. It ends after
// the limit of the dataset. The error of read or of ctx, with the path, is the last pair. An error of emit must end read.
func Number(ctx context.Context, d Dataset, read func(emit func(Row) error) error) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		names, index := namer{}, 0
		err := read(func(row Row) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			row.Index, row.Name = index, names.unique(row.Name)
			index++
			if !yield(row, nil) || index == d.Limit {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(Row{}, fmt.Errorf("read dataset %q: %w", redact.Address(d.Path), err))
		}
	}
}

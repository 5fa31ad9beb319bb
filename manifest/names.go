package manifest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
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

// Number sets Index, makes names unique, and ends after limit rows, unless limit is 0. An error of the
// rows or of ctx is the last pair.
//
// A repeated name gets a number: -2, -3 and so on. From row 65,536 on earlier names are no longer
// stored, and every name ends in the row's index. Distinct asserts that the names are unique; then they
// stay unchanged, except for unprintable characters.
func Number(ctx context.Context, rows iter.Seq2[Row, error], limit int, distinct bool) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		s := &stream{ctx: ctx, limit: limit, yield: yield, names: namer{}}
		for row, err := range rows {
			if err == nil {
				err = s.add(row, distinct)
			}
			if errors.Is(err, errStop) {
				return
			}
			if err != nil {
				yield(Row{}, err)
				return
			}
		}
	}
}

// emit yields one row. Its error ends the stream.
func (s *stream) emit(r Row) error { return s.add(r, false) }

// add yields one row. Distinct asserts that its name is unique in the dataset.
func (s *stream) add(r Row, distinct bool) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	r.Index = s.rows
	switch {
	case s.rows < namesKept:
		r.Name = s.names.unique(r.Name)
	case !distinct || r.Name != printable(r.Name):
		r.Name = s.names.numbered(r.Name, s.rows)
	}
	s.rows++
	if !s.yield(r, nil) || s.rows == s.limit {
		return errStop
	}
	return nil
}

package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"ddiff/internal/redact"
)

// The reasons of a [Skip].
const (
	SkipKind    = "not an image"
	SkipHidden  = "hidden"
	skipFolder  = "a folder; dataset.recursive: true reads the folders below"
	SkipWritten = "written by ddiff"
	SkipAlone   = "a mask or kernel without an image of its name"
	SkipRole    = "a further picture with the same name up to the first dot; rename it, or map its ending in dataset.columns"
)

// Skip is an entry of a dataset, or an argument, that is no row.
type Skip struct {
	// Path is a path or an address.
	Path string
	// Reason is one of the constants.
	Reason string
}

// skipNames limits the names that Skips keeps for each reason, and saidNames those in a line.
const skipNames, saidNames = 1000, 3

// Skips counts the skipped entries of a dataset by their reason. The zero value is empty.
type Skips []SkipCount

// SkipCount is the number of entries that were skipped for a reason, and the names of the first ones.
type SkipCount struct {
	Reason string   `json:"reason"`
	Count  int      `json:"count"`
	Names  []string `json:"names"`
}

// More is the number of entries beyond the names.
func (c SkipCount) More() int { return c.Count - len(c.Names) }

// Add counts an entry.
func (s *Skips) Add(e Skip) {
	at := slices.IndexFunc(*s, func(c SkipCount) bool { return c.Reason == e.Reason })
	if at < 0 {
		at = len(*s)
		*s = append(*s, SkipCount{Reason: e.Reason})
	}
	c := &(*s)[at]
	if c.Count++; len(c.Names) < skipNames {
		name := redact.Address(e.Path)
		_, member, _ := strings.Cut(name, "#")
		c.Names = append(c.Names, printable(cmp.Or(member, path.Base(name))))
	}
}

// Merge adds the entries of others.
func (s *Skips) Merge(others Skips) { *s = append(*s, others...) }

// Clone returns a copy that shares nothing.
func (s Skips) Clone() Skips {
	out := slices.Clone(s)
	for i := range out {
		out[i].Names = slices.Clone(out[i].Names)
	}
	return out
}

// Unite adds the entries of others whose reason and name s lacks.
func (s *Skips) Unite(others Skips) {
	for _, c := range others.Clone() {
		at := slices.IndexFunc(*s, func(own SkipCount) bool { return own.Reason == c.Reason })
		if at < 0 {
			*s = append(*s, c)
			continue
		}
		own := &(*s)[at]
		own.Count = max(own.Count, c.Count)
		for _, name := range c.Names {
			if !slices.Contains(own.Names, name) {
				own.Names = append(own.Names, name)
			}
		}
		own.Count = max(own.Count, len(own.Names))
	}
}

// MarshalJSON encodes an empty list as [].
func (s Skips) MarshalJSON() ([]byte, error) { return json.Marshal(append([]SkipCount{}, s...)) }

// Count returns the number of entries with a reason.
func (s Skips) Count(reason string) (n int) {
	for _, c := range s {
		if c.Reason == reason {
			n += c.Count
		}
	}
	return n
}

// Total returns the number of entries.
func (s Skips) Total() (n int) {
	for _, c := range s {
		n += c.Count
	}
	return n
}

// Report returns a line for each reason, with the names of the first entries; brief: one line with the number of entries.
func (s Skips) Report(brief bool) string {
	if n := s.Total(); brief && n > 0 {
		return fmt.Sprintf("skipped %d\n", n)
	}
	var lines strings.Builder
	for _, c := range s {
		said := c.Names[:min(len(c.Names), saidNames)]
		names := strings.Join(said, ", ")
		if more := c.Count - len(said); more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		fmt.Fprintf(&lines, "skipped %d: %s: %s\n", c.Count, c.Reason, names)
	}
	return lines.String()
}

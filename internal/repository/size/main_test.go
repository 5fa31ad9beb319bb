package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

const root = "../../.."

// TestArchitecture: docs/architecture.md has each package, and each imports only packages of later rows.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	h, err := measure(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range h.mistakes(string(text)) {
		t.Error(page + ": " + m)
	}
}

// mistakes compares the table with the code. The numbers may be a tenth off, so that not every commit changes the page.
func (h *house) mistakes(text string) []string {
	var found []string
	position := map[string]int{}
	for i, m := range row.FindAllStringSubmatch(text, -1) {
		dir := m[1]
		if _, twice := position[dir]; twice {
			found = append(found, fmt.Sprintf("%s has two rows", dir))
		}
		position[dir] = i
		p := h.packages[dir]
		if p == nil {
			found = append(found, fmt.Sprintf("%s has a row and is no package", dir))
			continue
		}
		for column, is := range map[string]int{m[2]: p.lines, m[3]: p.names} {
			if stated, err := strconv.Atoi(column); err != nil || !near(stated, is) {
				found = append(found, fmt.Sprintf("%s: the table says %s, counted %d; run make size", dir, column, is))
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(h.packages)) {
		at, ok := position[dir]
		if !ok {
			found = append(found, fmt.Sprintf("%s has no row", dir))
			continue
		}
		for _, to := range slices.Sorted(maps.Keys(h.packages[dir].imports)) {
			if below, ok := position[to]; ok && below <= at {
				found = append(found, fmt.Sprintf("%s imports %s, which stands above it: an arrow runs back up", dir, to))
			}
		}
	}
	return found
}

// near reports whether two counts differ by at most a tenth, or by ten.
func near(a, b int) bool {
	return max(a-b, b-a) <= max(10, b/10)
}

package manifest

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
)

// dirWindow is how many entries of a directory are held at once. A directory has no order: one
// with more entries is read again for each window of them.
const dirWindow = 1 << 16

// window is the next entries of a directory in the order of their names.
type window struct {
	entries []os.DirEntry
	more    bool // entries come after these
}

// last is the name after which the next window begins.
func (w window) last() string { return w.entries[len(w.entries)-1].Name() }

// readWindow returns the first entries of a directory that come after a name, at most most.
func readWindow(dir, after string, most int) (w window, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return w, err
	}
	defer f.Close() // nothing was written
	beyond := ""    // once there are enough entries: no later one is among the first
	for {
		const chunk = 1024
		entries, err := f.ReadDir(chunk)
		for _, e := range entries {
			if name := e.Name(); name > after && (beyond == "" || name < beyond) {
				w.entries = append(w.entries, e)
			}
			if len(w.entries) == 2*most {
				w.cut(most)
				beyond = w.last()
			}
		}
		if errors.Is(err, io.EOF) {
			w.cut(most)
			return w, nil
		}
		if err != nil {
			return window{}, err
		}
	}
}

// cut sorts the entries and keeps the first of them.
func (w *window) cut(most int) {
	slices.SortFunc(w.entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	if len(w.entries) > most {
		clear(w.entries[most:])
		w.entries, w.more = w.entries[:most], true
	}
}

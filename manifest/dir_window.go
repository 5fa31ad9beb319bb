package manifest

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
)

// dirWindow is the number of entries of a directory in memory. Directories have no order: a larger
// directory is read again for each window.
const dirWindow = 1 << 16

// window holds the next entries of a directory, sorted by name.
type window struct {
	entries []os.DirEntry
	more    bool // further entries follow
}

// last returns the name after which the next window begins.
func (w window) last() string { return w.entries[len(w.entries)-1].Name() }

// readWindow returns the first most entries of a directory after a name.
func readWindow(dir, after string, most int) (w window, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return w, err
	}
	defer f.Close() // opened for reading
	beyond := ""    // of a full window: later names do not belong to it
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

// cut sorts the entries and removes all but the first ones.
func (w *window) cut(most int) {
	slices.SortFunc(w.entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	if len(w.entries) > most {
		clear(w.entries[most:])
		w.entries, w.more = w.entries[:most], true
	}
}

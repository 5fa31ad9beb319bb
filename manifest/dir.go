package manifest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// directory emits the images of a directory, sorted by name. A subdirectory with the name of an image is a failing row.
func (s *stream) directory(root string, recursive bool) error {
	first, err := readWindow(root, "", s.window)
	if err != nil {
		return fmt.Errorf("%w: list the directory: %w; check its permissions", ErrNoDataset, reason(err))
	}
	if err := s.walk(root, "", first, recursive); err != nil {
		return err
	}
	if s.rows > 0 {
		return nil
	}
	remedy := "want files that end in " + imageKinds()
	if !recursive {
		remedy += "; set dataset.recursive: true to read the directories below"
	}
	return fmt.Errorf("%w: no image in the directory, %d other entries skipped; %s", ErrEmptyDataset, s.skipped, remedy)
}

// walk emits the entries of root/below; the first window is already read.
func (s *stream) walk(root, below string, w window, recursive bool) error {
	small := !w.more
	for {
		if err := s.emitEntries(root, below, w.entries, small, recursive); err != nil || !w.more {
			return err
		}
		var err error
		if w, err = readWindow(filepath.Join(root, below), w.last(), s.window); err != nil {
			return fmt.Errorf("%w: list the directory: %w", ErrNoDataset, reason(err))
		}
	}
}

// emitEntries emits a window of a directory. In a directory of one window, names lose their extension
// if they stay unique.
func (s *stream) emitEntries(root, below string, entries []os.DirEntry, small, recursive bool) error {
	var images []string
	for _, e := range entries {
		if !hidden(e.Name()) && s.set.isEntry(e.Name()) {
			images = append(images, e.Name())
		}
	}
	if small {
		images = stems(images)
	}
	for _, e := range entries {
		rel := filepath.Join(below, e.Name())
		path := filepath.Join(root, rel)
		var err error
		switch {
		case hidden(e.Name()):
		case s.set.isEntry(e.Name()):
			name := filepath.Join(below, images[0])
			images = images[1:]
			err = s.add(Row{Name: filepath.ToSlash(name), Image: path, Err: checkImage(path)}, true)
		case e.IsDir() && recursive:
			err = s.subdirectory(root, rel)
		default:
			s.onSkip(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// subdirectory descends into a directory. A directory that cannot be listed is a failing row: the
// number of its images is unknown, but the directory is reported.
func (s *stream) subdirectory(root, rel string) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	path := filepath.Join(root, rel)
	first, err := readWindow(path, "", s.window)
	if err != nil {
		return s.emit(Row{
			Name: filepath.ToSlash(rel), Image: path,
			Err: &FieldError{File: path, Err: fmt.Errorf("list the directory: %w", reason(err))},
		})
	}
	return s.walk(root, rel, first, true)
}

// hidden reports whether a file name begins with a dot. Hidden files are no images of a dataset.
func hidden(name string) bool { return strings.HasPrefix(name, ".") }

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

// globSpecial holds the characters of a pattern.
const globSpecial = `*?[\`

// glob emits the images that match a pattern, sorted by path. Names are relative to the last directory
// before the pattern's first special character.
func (s *stream) glob(pattern string) error {
	if strings.Contains(pattern, "**") {
		return fmt.Errorf("%w: ** is not supported; give the directory and dataset.recursive: true", ErrNoDataset)
	}
	if _, err := filepath.Match(pattern, ""); err != nil {
		return fmt.Errorf("%w: %w; check the brackets of dataset.path", ErrNoDataset, err)
	}
	root := filepath.Dir(pattern[:strings.IndexAny(pattern, `*?[`)+1])
	elements := strings.Split(strings.TrimPrefix(strings.TrimPrefix(pattern, root), string(filepath.Separator)), string(filepath.Separator))
	if err := s.match(root, "", elements); err != nil {
		return err
	}
	if s.rows == 0 {
		return fmt.Errorf("%w: the glob matches no image, %d other entries; want files that end in %s", ErrEmptyDataset, s.skipped, imageKinds())
	}
	return nil
}

// match emits the matches of a pattern's elements below root/below. As in a shell, an unreadable
// directory has no matches.
func (s *stream) match(root, below string, elements []string) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	element, rest := elements[0], elements[1:]
	if !strings.ContainsAny(element, globSpecial) {
		if _, err := os.Lstat(filepath.Join(root, below, element)); err != nil {
			return nil //nolint:nilerr // it matches nothing
		}
		return s.matched(root, below, []string{element}, []string{stem(element)}, rest)
	}
	for after, small := "", true; ; {
		w, err := readWindow(filepath.Join(root, below), after, s.window)
		if err != nil {
			return nil //nolint:nilerr // it matches nothing
		}
		small = small && !w.more
		var found []string
		for _, e := range w.entries {
			// Hidden names match explicit patterns only. The pattern is valid.
			if ok, _ := filepath.Match(element, e.Name()); ok && (!hidden(e.Name()) || hidden(element)) {
				found = append(found, e.Name())
			}
		}
		names := found
		if small && len(rest) == 0 {
			names = s.imageStems(found)
		}
		if err := s.matched(root, below, found, names, rest); err != nil || !w.more {
			return err
		}
		after = w.last()
	}
}

// imageStems returns the row names of files: without extension if the names stay unique.
func (s *stream) imageStems(files []string) []string {
	var images []string
	for _, f := range files {
		if s.set.isEntry(f) {
			images = append(images, f)
		}
	}
	short := stems(images)
	out := make([]string, len(files))
	for i, f := range files {
		if out[i] = f; s.set.isEntry(f) {
			out[i], short = short[0], short[1:]
		}
	}
	return out
}

// matched continues with the files of root/below that match an element; names holds their row names.
func (s *stream) matched(root, below string, files, names, rest []string) error {
	for i, f := range files {
		path := filepath.Join(root, below, f)
		var err error
		switch {
		case len(rest) > 0:
			if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
				err = s.match(root, filepath.Join(below, f), rest)
			}
		case s.set.isEntry(f):
			name := filepath.ToSlash(filepath.Join(below, names[i]))
			err = s.add(Row{Name: name, Image: path, Err: checkImage(path)}, true)
		default:
			s.onSkip(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

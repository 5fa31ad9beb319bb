package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

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

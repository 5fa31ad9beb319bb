package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// directory emits the images of a directory, sorted by name. A subdirectory with the name of an image is a failing row.
func (s *stream) directory(root string, recursive bool) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return fmt.Errorf("%w: list the directory: %w; check its permissions", ErrNoDataset, reason(err))
	}
	if err := s.entries(root, "", entries, recursive); err != nil {
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

// entries emits the entries of root/below. Names lose their extension if they stay unique.
func (s *stream) entries(root, below string, entries []os.DirEntry, recursive bool) error {
	var images []string
	for _, e := range entries {
		if !hidden(e.Name()) && s.set.isEntry(e.Name()) {
			images = append(images, e.Name())
		}
	}
	names := stems(images)
	for _, e := range entries {
		rel := filepath.Join(below, e.Name())
		path := filepath.Join(root, rel)
		var err error
		switch {
		case hidden(e.Name()):
		case s.set.isEntry(e.Name()):
			err = s.image(filepath.Join(below, names[0]), path)
			names = names[1:]
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
	entries, err := os.ReadDir(path)
	if err != nil {
		return s.emit(Row{
			Name: filepath.ToSlash(rel), Image: path,
			Err: &FieldError{File: path, Err: fmt.Errorf("list the directory: %w", reason(err))},
		})
	}
	return s.entries(root, rel, entries, true)
}

// image emits the row of an image whose name is unique in the dataset.
func (s *stream) image(name, path string) error {
	return s.add(Row{Name: filepath.ToSlash(name), Image: path, Err: checkImage(path)}, true)
}

// hidden reports whether a file name begins with a dot. Hidden files are no images of a dataset.
func hidden(name string) bool { return strings.HasPrefix(name, ".") }

// glob emits the images that match a pattern, sorted by path. Names are relative to the last directory
// before the pattern's first special character. As in a shell, an unreadable directory has no matches.
func (s *stream) glob(pattern string) error {
	if strings.Contains(pattern, "**") {
		return fmt.Errorf("%w: ** is not supported; give the directory and dataset.recursive: true", ErrNoDataset)
	}
	var matches []string
	_, err := filepath.Match(pattern, "")
	if err == nil {
		matches, err = filepath.Glob(pattern)
	}
	if err != nil {
		return fmt.Errorf("%w: %w; check the brackets of dataset.path", ErrNoDataset, err)
	}
	root := filepath.Dir(pattern[:strings.IndexAny(pattern, `*?[`)+1])
	below := func(path string) string {
		return strings.TrimPrefix(strings.TrimPrefix(path, root), string(filepath.Separator))
	}
	var found, images []string
	for _, path := range matches {
		rel := below(path)
		if hiddenMatch(below(pattern), rel) {
			continue
		}
		found = append(found, rel)
		if s.set.isEntry(rel) {
			images = append(images, rel)
		}
	}
	names := stems(images)
	for _, rel := range found {
		path := filepath.Join(root, rel)
		if !s.set.isEntry(rel) {
			s.onSkip(path)
			continue
		}
		if err := s.image(names[0], path); err != nil {
			return err
		}
		names = names[1:]
	}
	if s.rows == 0 {
		return fmt.Errorf("%w: the glob matches no image, %d other entries; want files that end in %s", ErrEmptyDataset, s.skipped, imageKinds())
	}
	return nil
}

// hiddenMatch reports whether a path has a hidden element that the pattern, which it matches, does not spell.
func hiddenMatch(pattern, path string) bool {
	elements := strings.Split(pattern, string(filepath.Separator))
	for i, name := range strings.Split(path, string(filepath.Separator)) {
		if hidden(name) && !hidden(elements[i]) {
			return true
		}
	}
	return false
}

package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// directory emits the images of a directory, sorted by name. A directory below it that is
// named like an image is a row that fails.
func (s *stream) directory(root string, recursive bool) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return fmt.Errorf("%w: list the directory: %w; check its permissions", ErrNoDataset, reason(err))
	}
	if err := s.walk(root, "", entries, recursive); err != nil {
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

// walk emits the entries of root/below, which os.ReadDir has sorted.
func (s *stream) walk(root, below string, entries []os.DirEntry, recursive bool) error {
	var images []string
	for _, e := range entries {
		if !hidden(e.Name()) && isImage(e.Name()) {
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
		case isImage(e.Name()):
			name := filepath.Join(below, names[0])
			names = names[1:]
			err = s.emit(Row{Name: filepath.ToSlash(name), Image: path, Err: checkImage(path)})
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

// subdirectory descends. One that cannot be listed is a row that fails: how many images it
// hides is not known, but it does not go unseen.
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
	return s.walk(root, rel, entries, true)
}

// glob emits the images that a pattern matches, sorted by path. Names are relative to the
// last directory before the pattern's first special character.
func (s *stream) glob(pattern string) error {
	if strings.Contains(pattern, "**") {
		return fmt.Errorf("%w: ** is not supported; give the directory and dataset.recursive: true", ErrNoDataset)
	}
	matches, err := filepath.Glob(pattern)
	if err != nil {
		return fmt.Errorf("%w: %w; check the brackets of dataset.path", ErrNoDataset, err)
	}
	slices.Sort(matches)
	root := filepath.Dir(pattern[:strings.IndexAny(pattern, `*?[`)+1])
	special := strings.TrimPrefix(strings.TrimPrefix(pattern, root), string(filepath.Separator))
	var images []string
	for _, path := range matches {
		switch rel, err := filepath.Rel(root, path); {
		case err != nil || hiddenMatch(rel, special):
		case isImage(path):
			images = append(images, rel)
		default:
			s.onSkip(path)
		}
	}
	if len(images) == 0 {
		return fmt.Errorf("%w: the glob matches no image, %d other entries; want files that end in %s", ErrEmptyDataset, s.skipped, imageKinds())
	}
	names := stems(images)
	for i, rel := range images {
		path := filepath.Join(root, rel)
		if err := s.emit(Row{Name: filepath.ToSlash(names[i]), Image: path, Err: checkImage(path)}); err != nil {
			return err
		}
	}
	return nil
}

// hidden files begin with a dot; they are never meant.
func hidden(name string) bool { return strings.HasPrefix(name, ".") }

// hiddenMatch tells whether a pattern met a hidden name that it does not spell out, as a
// shell would. Both paths have the same number of elements.
func hiddenMatch(path, pattern string) bool {
	elements := strings.Split(pattern, string(filepath.Separator))
	for i, name := range strings.Split(path, string(filepath.Separator)) {
		if hidden(name) && i < len(elements) && !hidden(elements[i]) {
			return true
		}
	}
	return false
}

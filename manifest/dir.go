package manifest

import (
	"fmt"
	"os"
	"path/filepath"
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

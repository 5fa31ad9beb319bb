package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// written has the names of the files and folders with pictures that ddiff writes into an output.
var written = []string{"items", "restored", "sheets", "figures", "mosaic.png"}

// ownFolder is the folder of an output that has no pictures.
const ownFolder = ".ddiff"

// HidesImages reports whether an entry of a folder is hidden and no image of a dataset, although it is one, or a folder that may have some.
func HidesImages(name string, folder, image bool) bool {
	return hidden(name) && (image || folder && name != ownFolder)
}

// IsWritten reports whether ddiff wrote a file or folder into an output: it is no image of a later run.
func IsWritten(path string) bool {
	if !slices.Contains(written, filepath.Base(path)) {
		return false
	}
	_, err := os.Lstat(filepath.Join(filepath.Dir(path), ownFolder, "lock"))
	return err == nil
}

// directory emits the images of a directory, sorted by name. A subdirectory with the name of an image is a failing row.
func (s *stream) directory(root string, recursive bool) error {
	if err := s.walk(root, "", recursive); err != nil {
		return err
	}
	if s.rows > 0 {
		return nil
	}
	remedy := "want files that end in " + imageKinds()
	switch {
	case s.other != "":
		remedy = "give its lists or archives as " + s.other
	case !recursive:
		remedy += "; set dataset.recursive: true to read the directories below"
	}
	return fmt.Errorf("%w: no image in the directory, %d other entries skipped; %s", ErrEmptyDataset, s.skipped, remedy)
}

// walk emits the images of root/below. Names lose their extension if they stay unique in their directory. A directory below root that
// cannot be listed is a failing row: the number of its images is unknown, but the directory is reported.
func (s *stream) walk(root, below string, recursive bool) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	dir := filepath.Join(root, below)
	entries, err := os.ReadDir(dir)
	if err != nil {
		err = fmt.Errorf("list the directory: %w", reason(err))
		if below == "" {
			return fmt.Errorf("%w: %w; check its permissions", ErrNoDataset, err)
		}
		return s.emit(Row{Name: filepath.ToSlash(below), Image: dir, Err: &FieldError{File: dir, Err: err}})
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return s.passesOver(filepath.Join(dir, e.Name()), e.IsDir()) })
	var images []string
	for _, e := range entries {
		if s.set.isEntry(e.Name()) {
			images = append(images, e.Name())
		}
	}
	images = stems(images)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		var err error
		switch {
		case s.set.isEntry(e.Name()):
			err = s.file(filepath.Join(below, images[0]), path)
			images = images[1:]
		case e.IsDir() && recursive:
			err = s.walk(root, filepath.Join(below, e.Name()), recursive)
		case e.IsDir():
			s.onSkip(path, skipFolder)
		default:
			s.onSkip(path, SkipKind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// passesOver reports whether a path is hidden or [IsWritten], and counts it as skipped unless it is a hidden file of another kind.
func (s *stream) passesOver(path string, folder bool) bool {
	switch {
	case hidden(filepath.Base(path)):
		if HidesImages(filepath.Base(path), folder, s.set.isEntry(path)) {
			s.onSkip(path, SkipHidden)
		}
		return true
	case IsWritten(path):
		s.onSkip(path, SkipWritten)
		return true
	}
	return false
}

// otherPattern returns the glob of a list or an archive and of its siblings, empty for other files.
func otherPattern(path string) string {
	ext := strings.ToLower(filepath.Ext(path))
	if FormatOf(path) == "" && ext != ".parquet" && ext != ".tar" || ext == ".txt" {
		return ""
	}
	return strconv.Quote(filepath.Join(filepath.Dir(path), "*"+filepath.Ext(path)))
}

func (s *stream) file(name, path string) error {
	return s.emit(Row{Name: filepath.ToSlash(name), Image: path, Err: checkImage(path)})
}

// hidden reports whether a file name begins with a dot. Hidden files are no images of a dataset.
func hidden(name string) bool { return strings.HasPrefix(name, ".") }

// globSpecial holds the characters that make a path a pattern.
const globSpecial = `*?[`

// glob emits the images that match a pattern, sorted by path. Names are relative to the last directory
// before the pattern's first special character. As in a shell, an unreadable directory has no matches, and hidden images are skipped unless the pattern spells their dot.
func (s *stream) glob(pattern string) error {
	if strings.Contains(pattern, "**") {
		return fmt.Errorf("%w: ** is not supported; give the directory and dataset.recursive: true", ErrNoDataset)
	}
	matches, err := filepath.Glob(pattern)
	if err != nil {
		return fmt.Errorf("%w: %w; check the brackets of dataset.path", ErrNoDataset, err)
	}
	if len(matches) == 0 {
		return fmt.Errorf("%w: the glob matches no file; check dataset.path", ErrEmptyDataset)
	}
	root := filepath.Dir(pattern[:strings.IndexAny(pattern, globSpecial)+1])
	matches = slices.DeleteFunc(matches, func(path string) bool {
		for is := path; len(is) > len(root); is = filepath.Dir(is) {
			if IsWritten(is) {
				s.onSkip(path, SkipWritten)
				return true
			}
		}
		found := matchesHidden(pattern, path)
		if found && s.set.isEntry(path) {
			s.onSkip(path, SkipHidden)
		}
		return found
	})
	var images []string
	for _, path := range matches {
		if s.set.isEntry(path) {
			images = append(images, strings.TrimPrefix(strings.TrimPrefix(path, root), string(filepath.Separator)))
		}
	}
	images = stems(images)
	for _, path := range matches {
		if !s.set.isEntry(path) {
			s.onSkip(path, SkipKind)
			continue
		}
		if err := s.file(images[0], path); err != nil {
			return err
		}
		images = images[1:]
	}
	if s.rows == 0 {
		return fmt.Errorf("%w: the glob matches no image, %d other entries; want files that end in %s", ErrEmptyDataset, s.skipped, imageKinds())
	}
	return nil
}

// matchesHidden reports whether an element of a path is hidden and that of the pattern, which the path matches, does not begin with a dot.
func matchesHidden(pattern, path string) bool {
	elements := strings.Split(pattern, string(filepath.Separator))
	for i, name := range strings.Split(path, string(filepath.Separator)) {
		if hidden(name) && !hidden(elements[i]) {
			return true
		}
	}
	return false
}

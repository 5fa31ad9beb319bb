package manifest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// imageExtensions are the file names that are taken for images, in lower case.
var imageExtensions = []string{".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp"}

// Row is one entry of a dataset, before anything in it has been decoded.
type Row struct {
	// Index is the position in the dataset, from 0.
	Index int
	// Name is for people: the path below the dataset's root without its extension, or the
	// name that a list gives. Rows that would have the same name keep their extension, or
	// get a number, so that names are unique within the dataset. See [Number] for how.
	Name string
	// Image is the absolute path or the address of the ground truth, Measurement that of a
	// stored y (.npy). At least one of them is set, unless Err is.
	Image       string
	Measurement string
	// ImageSHA256 is the lower-case hex digest of the image's bytes, Width and Height the
	// image's size in pixels before the campaign's fit, where the dataset says so; empty and
	// zero otherwise. With them the image need not be read to make the row's items. They are
	// checked when it is.
	ImageSHA256   string
	Width, Height int
	// Overrides are what a list says about this row alone.
	Overrides Overrides
	// Err is what is wrong with this row; the other rows do not suffer from it. It names
	// the file, and line and field where there are any. Only the path, the name and the
	// task of such a row may be used.
	Err error
}

// Overrides replace settings of the campaign for one row. Zero values leave them.
type Overrides struct {
	// Task keeps only this task of the campaign, or adds it when it has no such task.
	Task string
	// Sigma is the measurement noise, 0..1.
	Sigma *float64
	Seed  *uint64
	// Params replace single parameters of the row's tasks.
	Params map[string]float64
	// Mask and Kernel are absolute paths or addresses of files that replace what the operator
	// draws.
	Mask   string
	Kernel string
}

// Rows streams a dataset of this machine in a stable order: directories and globs sorted by
// path, element by element, lists in the order of their lines. Each iteration reads the dataset anew.
//
// A row's own problem is in its [Row.Err]. A problem of the dataset as a whole
// ([ErrNoDataset], [ErrEmptyDataset], [ErrBadList]) or the end of ctx comes as the error of
// the last pair, whose row is empty. Every other pair has a nil error.
//
// Skipped is called with the path of each file or folder of a directory that is not an
// image, so that nothing is left out silently; hidden ones are not mentioned. It may be nil.
//
// Memory does not grow with the rows: of a list one line is held, of a directory
// at most 65,536 entries; in a larger one names keep their extension. A file of this machine is looked at when its row is made, which costs
// a few microseconds.
func Rows(ctx context.Context, d Dataset, skipped func(path string)) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		s := &stream{ctx: ctx, limit: d.Limit, yield: yield, names: namer{}, window: dirWindow}
		s.onSkip = func(path string) {
			s.skipped++
			if skipped != nil {
				skipped(path)
			}
		}
		if err := s.dataset(d); err != nil && !errors.Is(err, errStop) {
			yield(Row{}, fmt.Errorf("read dataset %q: %w", d.Path, err))
		}
	}
}

// errStop ends a stream early without being a problem: the limit is reached, or nobody
// listens any more.
var errStop = errors.New("stop")

// stream is one iteration over a dataset.
type stream struct {
	ctx     context.Context
	limit   int
	yield   func(Row, error) bool
	onSkip  func(path string)
	names   namer
	window  int // entries of a directory that are held at once
	rows    int
	skipped int
}

// dataset finds out what the path is and reads it.
func (s *stream) dataset(d Dataset) error {
	path := strings.TrimPrefix(d.Path, LocalPrefix)
	if path == "" {
		return fmt.Errorf("%w: dataset.path is empty", ErrNoDataset)
	}
	if IsAddress(path) {
		return fmt.Errorf("%w: it is not on this machine", ErrNoDataset)
	}
	root, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoDataset, err)
	}
	info, err := os.Stat(root)
	switch format := FormatOf(root); {
	case err != nil && errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(path, `*?[`):
		return s.glob(root)
	case err != nil:
		return fmt.Errorf("%w: %w; check dataset.path", ErrNoDataset, reason(err))
	case info.IsDir():
		return s.directory(root, d.Recursive)
	case format != "":
		return s.list(root, format, d.Columns)
	case IsImage(root):
		return s.emit(Row{Name: stem(filepath.Base(root)), Image: root, Err: checkImage(root)})
	default:
		return fmt.Errorf("%w: want a directory, a glob, a .csv, .jsonl or .txt list, or an image (%s)", ErrNoDataset, imageKinds())
	}
}

// IsImage tells by the name of a file whether it is taken for an image.
func IsImage(path string) bool {
	return slices.Contains(imageExtensions, strings.ToLower(filepath.Ext(path)))
}

// imageKinds lists the extensions for people.
func imageKinds() string {
	return strings.ReplaceAll(strings.Join(imageExtensions, ", "), ".", "")
}

// checkImage finds what can be found without decoding.
func checkImage(path string) error {
	if err := CheckFile(path); err != nil {
		return &FieldError{File: path, Err: err}
	}
	return nil
}

// CheckFile makes sure that a path is a regular file with bytes that can be opened.
// Symbolic links are followed.
func CheckFile(path string) error {
	if !utf8.ValidString(path) {
		return errors.New("the file name is not valid UTF-8; rename the file")
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return reason(err)
	case info.IsDir():
		return errors.New("is a directory, want a file")
	case !info.Mode().IsRegular():
		return errors.New("is not a regular file")
	case info.Size() == 0:
		return errors.New("is an empty file")
	}
	f, err := os.Open(path)
	if err != nil {
		return reason(err)
	}
	return f.Close()
}

// reason drops the operation and the path from a file system error; the caller names them.
func reason(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

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
	"time"

	"ddiff/restore/item"
)

// imageExtensions holds the extensions of images, in lower case.
var imageExtensions = []string{".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".tif", ".tiff", ".webp", ".bmp", ".gif"}

// Row is one entry of a dataset. Its files are not decoded.
type Row struct {
	// Index is the position in the dataset, from 0.
	Index int
	// Name is the path below the dataset's root without its extension, or the name in the list. Names are unique within
	// the dataset: colliding names keep their extension or get a number, see [Number].
	Name string
	// Image is the absolute path or the address of the ground truth, Measurement that of a stored y
	// (.npy). At least one of them is set, unless Err is.
	Image       string
	Measurement string
	// ImageSHA256 is the lower-case hex digest of the image's file, Width and Height its size in
	// pixels before the campaign's fit, if the dataset states them. With them the image is not read
	// for the row's items; they are checked when it is read.
	ImageSHA256   string
	Width, Height int
	// Modified is the time of the image's last write, if the dataset's listing states it.
	Modified time.Time
	// Overrides holds the row's own settings.
	Overrides Overrides
	// List and Line are the name of the list and the line that the row has there, from 1; zero in a dataset without lists.
	List string
	Line int
	// Err is the error of this row. It names the file and, if known, line and field. Only path, name
	// and task of such a row are valid.
	Err error
}

// Overrides replaces settings of the campaign for one row. Zero values keep them.
type Overrides struct {
	// Task restricts the row to this task; the campaign need not have it.
	Task string
	// Sigma is the measurement noise, 0..1 or auto.
	Sigma *item.Sigma
	// Photons is the number of photons of a white pixel, as in [Spec].
	Photons *float64
	Seed    *uint64
	// Params replaces single parameters of the row's tasks.
	Params map[string]float64
	// Mask and Kernel are absolute paths or addresses of files that replace the operator's draws.
	Mask   string
	Kernel string
}

// Rows streams a local dataset in a stable order: directories and globs sorted by path, element by
// element, lists in the order of their lines. Each iteration reads the dataset again.
//
// [Row.Err] is the error of a row. An error of the whole dataset ([ErrNoDataset], [ErrEmptyDataset], [ErrBadList]) or
// of ctx is the error of the last pair, whose row is empty. All other pairs have a nil error.
//
// Rows calls skipped with each file or folder of a directory or glob that is no row, except hidden files that are no images. It may be nil.
//
// Memory holds one line of a list, or the names of one directory or of a glob's files, and some 30 bytes for each row. Rows checks each
// local file, which takes a few microseconds.
func Rows(ctx context.Context, d Dataset, skipped func(Skip)) iter.Seq2[Row, error] {
	return Number(ctx, d, func(emit func(Row) error) error { return ReadLocal(ctx, d, emit, skipped) })
}

// ReadLocal emits the rows of a local dataset without numbers, as [Rows] does with them. An error of emit ends it.
func ReadLocal(ctx context.Context, d Dataset, emit func(Row) error, skipped func(Skip)) error {
	s := &stream{ctx: ctx, set: d}
	s.emit = func(r Row) error {
		s.rows++
		return emit(r)
	}
	s.onSkip = func(path, reason string) {
		s.skipped++
		if s.other == "" {
			s.other = otherPattern(path)
		}
		if skipped != nil {
			skipped(Skip{path, reason})
		}
	}
	return s.dataset(d)
}

// stream is one iteration over a dataset.
type stream struct {
	ctx     context.Context
	set     Dataset
	emit    func(Row) error
	onSkip  func(path, reason string)
	rows    int
	skipped int
	// other is the pattern of the first skipped list or archive.
	other string
}

// dataset reads the dataset by the kind of its path.
func (s *stream) dataset(d Dataset) error {
	path := strings.TrimPrefix(d.Path, LocalPrefix)
	if path == "" {
		return fmt.Errorf("%w: dataset.path is empty", ErrNoDataset)
	}
	if IsAddress(path) {
		return fmt.Errorf("%w: it is not a local path", ErrNoDataset)
	}
	root, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoDataset, err)
	}
	info, err := os.Stat(root)
	switch format := FormatOf(root); {
	case err != nil && errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(path, globSpecial):
		return s.glob(root)
	case err != nil:
		return fmt.Errorf("%w: %w; check dataset.path", ErrNoDataset, reason(err))
	case info.IsDir():
		return s.directory(root, d.Recursive)
	case format != "":
		return s.list(root, format, d.Columns)
	case s.set.isEntry(root):
		return s.emit(Row{Name: stem(filepath.Base(root)), Image: root, Err: checkImage(root)})
	default:
		return fmt.Errorf("%w: want a directory, a glob, a .csv, .jsonl, .txt or .parquet list with its cells separated by commas, a .tar archive, or an image (%s)", ErrNoDataset, imageKinds())
	}
}

// IsImage reports whether the extension of a file is that of an image.
func IsImage(path string) bool {
	return slices.Contains(imageExtensions, strings.ToLower(filepath.Ext(path)))
}

func imageKinds() string {
	return strings.ReplaceAll(strings.Join(imageExtensions, ", "), ".", "")
}

func checkImage(path string) error {
	if err := CheckFile(path); err != nil {
		return &FieldError{File: path, Err: err}
	}
	return nil
}

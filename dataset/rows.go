package dataset

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"ddiff/manifest"
)

// errStop ends a reading that nobody listens to any more.
var errStop = errors.New("stop")

// Rows streams a dataset, see the package comment for what its path may be, in a stable
// order: that of the paths its braces stand for, and within one of keys, lines or members.
// Each iteration reads the dataset anew, and of all but directories only what has been asked
// for so far.
//
// It keeps to the rules of [manifest.Rows]: what is wrong with one row is in its Err, a
// problem of the dataset as a whole, or the end of ctx, is the error of the last pair, and
// skipped, which may be nil, is told of what was passed over because it is no image. Files
// on other machines are not looked at: what is wrong with one comes out when it is read. One
// of several shards or lists that is missing or damaged is a row that fails, so that it does
// not go unseen; one that is [ErrUnavailable] ends the dataset.
func (s *Sources) Rows(ctx context.Context, d manifest.Dataset, skipped func(path string)) iter.Seq2[manifest.Row, error] {
	return func(yield func(manifest.Row, error) bool) {
		r := &reading{Sources: s, ctx: ctx, dataset: d, skipped: skipped}
		distinct := false
		if a, err := Parse(d.Path); err == nil && !braces.MatchString(d.Path) {
			k := kindOf(a)
			distinct = k == kindPrefix || k == kindOther
		}
		for row, err := range manifest.Number(ctx, r.rows(), d.Limit, distinct) {
			if err != nil {
				err = fmt.Errorf("read dataset %q: %w", public(d.Path), err)
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// public is a path for errors.
func public(path string) string {
	if !manifest.IsAddress(path) {
		return path
	}
	if a, err := Parse(path); err == nil {
		return a.Public()
	}
	path, _, _ = strings.Cut(path, "?")
	scheme, rest, _ := strings.Cut(path, "://")
	host, below, _ := strings.Cut(rest, "/")
	return scheme + "://" + host[strings.LastIndex(host, "@")+1:] + "/" + below
}

// reading is one iteration over a dataset.
type reading struct {
	*Sources
	ctx     context.Context
	dataset manifest.Dataset
	skipped func(path string)
	passed  int // what was skipped
	listed  int // rows so far
}

// emitter hands out one row; its error ends the reading.
type emitter func(manifest.Row) error

// rows yields the rows without numbers.
func (r *reading) rows() iter.Seq2[manifest.Row, error] {
	return func(yield func(manifest.Row, error) bool) {
		err := r.read(func(row manifest.Row) error {
			r.listed++
			if !yield(row, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(manifest.Row{}, err)
		}
	}
}

// read goes through the paths that the dataset's path stands for.
func (r *reading) read(emit emitter) error {
	several := braces.MatchString(r.dataset.Path)
	for path, err := range expand(r.dataset.Path) {
		if err != nil {
			return err
		}
		if err := r.ctx.Err(); err != nil {
			return err
		}
		err := r.path(path, emit)
		if err != nil && several && lasting(err) {
			err = emit(failedPart(path, err))
		}
		if err != nil {
			return err
		}
	}
	if r.listed == 0 {
		return fmt.Errorf("%w: %d entries that are no images were passed over", manifest.ErrEmptyDataset, r.passed)
	}
	return nil
}

// failedPart is the row that stands for a list or a shard that cannot be read, or not to its
// end: how many rows it hides is not known.
func failedPart(path string, err error) manifest.Row {
	path = public(path)
	return manifest.Row{Name: stem(filepath.Base(path)), Image: path, Err: &manifest.FieldError{File: path, Err: err}}
}

func stem(name string) string { return strings.TrimSuffix(name, filepath.Ext(name)) }

// kind is what a path of a dataset is.
type kind int

const (
	kindOther kind = iota
	kindImage
	kindList
	kindParquet
	kindShard
	kindPrefix // of a bucket
)

// kindOf tells by the name.
func kindOf(a Address) kind {
	ext := strings.ToLower(filepath.Ext(a.base()))
	switch {
	case manifest.FormatOf(a.base()) != "":
		return kindList
	case ext == ".parquet":
		return kindParquet
	case ext == ".tar":
		return kindShard
	case manifest.IsImage(a.base()):
		return kindImage
	case a.scheme == schemeS3:
		return kindPrefix
	}
	return kindOther
}

// path reads one path.
func (r *reading) path(path string, emit emitter) error {
	if !manifest.IsAddress(path) {
		abs, err := filepath.Abs(strings.TrimPrefix(path, manifest.LocalPrefix))
		if err != nil || path == "" {
			return r.local(path, emit) // it says what is wrong
		}
		if strings.ContainsAny(abs, `*?[`) && !slices.Contains([]kind{kindShard, kindParquet}, kindOf(Address{scheme: schemeFile, file: abs})) {
			return r.local(path, emit)
		}
		path = abs
	}
	a, err := Parse(path)
	if err != nil {
		return fmt.Errorf("%w: %w", manifest.ErrNoDataset, err)
	}
	if a.part != whole {
		return fmt.Errorf("%w: a part of an object is no dataset", manifest.ErrNoDataset)
	}
	if err := r.allowed(a); err != nil {
		return err
	}
	switch kindOf(a) {
	case kindList:
		return r.list(a, emit)
	case kindParquet:
		return r.parquet(a, emit)
	case kindShard:
		return r.shard(a, emit)
	case kindPrefix:
		return r.prefix(a, emit)
	case kindImage:
		if !a.local() {
			return emit(manifest.Row{Name: stem(a.base()), Image: a.String()})
		}
	}
	if a.local() {
		return r.local(a.file, emit)
	}
	return fmt.Errorf("%w: want a list (.csv, .jsonl, .txt, .parquet), a shard (.tar) or an image; name the file as it ends", manifest.ErrNoDataset)
}

// openPart opens a list or a shard.
func (r *reading) openPart(a Address) (object, error) {
	obj, err := r.open(r.ctx, a)
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("%w: %w; check dataset.path", manifest.ErrNoDataset, err)
	}
	return obj, err
}

// local reads a directory, a glob or an image of this machine.
func (r *reading) local(path string, emit emitter) error {
	d := r.dataset
	d.Path, d.Limit = path, 0
	for row, err := range manifest.Rows(r.ctx, d, r.skip) {
		if err != nil {
			return errors.Unwrap(err) // Rows says the same about the path
		}
		if err := emit(row); err != nil {
			return err
		}
	}
	return nil
}

// skip tells of what was passed over.
func (r *reading) skip(path string) {
	r.passed++
	if r.skipped != nil {
		r.skipped(path)
	}
}

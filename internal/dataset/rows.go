package dataset

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ddiff/internal/redact"
	"ddiff/internal/regular"
	"ddiff/manifest"
)

// Rows streams a dataset, whose path the package comment describes, in a stable order: the order of the expanded
// braces, then of keys, lines or members. Each iteration reads the dataset again. Except for directories, it reads only
// as far as the consumer.
//
// Rows follows the rules of [manifest.Rows]: the problem of one row is its Err; a problem of the dataset, or the end of
// ctx, is the error of the last pair; skipped, which may be nil, receives the entries that are not images. Rows does
// not check remote files; their problems appear when they are read. If one of several shards or lists is missing or
// damaged, Rows yields a failed row for it. [ErrUnavailable], and [ErrDenied] of a bucket, end the dataset: the remaining
// rows are unknown.
func (s *Sources) Rows(ctx context.Context, d manifest.Dataset, skipped func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
	return manifest.Number(ctx, d, func(emit func(manifest.Row) error) error {
		r := &reading{Sources: s, ctx: ctx, dataset: d, skipped: skipped}
		return r.read(func(row manifest.Row) error {
			r.listed++
			return emit(row)
		})
	})
}

// reading is one iteration over a dataset.
type reading struct {
	*Sources
	ctx     context.Context
	dataset manifest.Dataset
	skipped func(manifest.Skip)
	ignored int // skipped entries
	listed  int // rows
}

// emitter emits one row. Its error ends the iteration.
type emitter func(manifest.Row) error

func (r *reading) read(emit emitter) error {
	paths, err := expand(r.dataset.Path)
	if err != nil {
		return err
	}
	paths = matches(paths)
	several := len(paths) > 1 || braces.MatchString(r.dataset.Path)
	for _, path := range paths {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		err := r.path(path, emit)
		if several && err != nil && permanent(err) {
			err = emit(failedPart(path, err))
		}
		if err != nil {
			return err
		}
	}
	if r.listed == 0 && r.ignored == 0 {
		return fmt.Errorf("%w: nothing is there; check dataset.path", manifest.ErrEmptyDataset)
	}
	if r.listed == 0 {
		return fmt.Errorf("%w: skipped %d entries that are not images", manifest.ErrEmptyDataset, r.ignored)
	}
	return nil
}

// matches replaces each local pattern of lists or archives by the files that it matches.
func matches(paths []string) []string {
	var out []string
	for _, path := range paths {
		var found []string
		local := !manifest.IsAddress(path) && strings.ContainsAny(path, `*?[`)
		if local && slices.Contains([]kind{kindList, kindParquet, kindShard}, kindOf(Address{scheme: schemeFile, file: path})) {
			if _, err := os.Lstat(path); err != nil {
				found, _ = filepath.Glob(path) // the pattern itself fails with its reason
			}
		}
		if len(found) == 0 {
			found = []string{path}
		}
		out = append(out, found...)
	}
	return out
}

// failedPart returns a failed row for a list or shard that cannot be read completely. The number of its rows is
// unknown.
func failedPart(path string, err error) manifest.Row {
	path = redact.Address(path)
	return manifest.Row{Name: stem(filepath.Base(path)), Image: path, Err: &manifest.FieldError{File: path, Err: err}}
}

func stem(name string) string { return strings.TrimSuffix(name, filepath.Ext(name)) }

// kind is the kind of a path in a dataset.
type kind int

const (
	kindOther kind = iota
	kindImage
	kindList
	kindParquet
	kindShard
	kindPrefix // of a bucket
)

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

func (r *reading) path(path string, emit emitter) error {
	if !manifest.IsAddress(path) {
		abs, err := filepath.Abs(strings.TrimPrefix(path, manifest.LocalPrefix))
		if err != nil || path == "" {
			return r.local(path, emit) // returns the error
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
	if a.part != partAll {
		return fmt.Errorf("%w: part of an object is not a dataset", manifest.ErrNoDataset)
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
	return fmt.Errorf("%w: want a list (.csv, .jsonl, .txt, .parquet), a shard (.tar) or an image with its extension", manifest.ErrNoDataset)
}

// openPart opens a list or a shard.
func (r *reading) openPart(a Address) (object, error) {
	obj, err := r.open(r.ctx, a)
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("%w: %w; check dataset.path", manifest.ErrNoDataset, cause{err, ErrNotFound})
	}
	if errors.Is(err, regular.ErrKind) {
		return nil, fmt.Errorf("%w: %w; name a file", manifest.ErrNoDataset, err)
	}
	if errors.Is(err, manifest.ErrEmptyFile) {
		return nil, fmt.Errorf("%w: %w; add at least one row", manifest.ErrEmptyDataset, err)
	}
	return obj, err
}

// cause is an error without the text of the sentinel with which it begins.
type cause struct {
	error
	sentinel error
}

func (c cause) Unwrap() error { return c.error }

func (c cause) Error() string { return strings.TrimPrefix(c.error.Error(), c.sentinel.Error()+": ") }

func (r *reading) local(path string, emit emitter) error {
	d := r.dataset
	d.Path = path
	return manifest.ReadLocal(r.ctx, d, emit, func(e manifest.Skip) { r.skip(e.Path, e.Reason) })
}

// skip counts and reports a skipped entry.
func (r *reading) skip(path, reason string) {
	r.ignored++
	if r.skipped != nil {
		r.skipped(manifest.Skip{Path: path, Reason: reason})
	}
}

package dataset

import (
	"errors"
	"path"
	"strings"
	"unicode/utf8"

	"ddiff/manifest"
)

// errReplacedName: the answer of a server has no form for the name of an object.
var errReplacedName = errors.New("the server lists the object with a replaced character in its name, so that nobody can request it; rename the object")

// prefix emits the images below a prefix of a bucket in byte order of their keys. It holds one page in memory.
func (r *reading) prefix(a Address, emit emitter) error {
	store, err := r.buckets.open(r.ctx, a)
	if err != nil {
		return err
	}
	prefix := strings.TrimSuffix(a.key(), "/")
	if prefix != "" {
		prefix += "/"
	}
	for info, err := range store.List(r.ctx, prefix) {
		if err != nil {
			return storageError(err)
		}
		name := strings.TrimPrefix(info.Key, prefix)
		image := a.sibling(info.Key).String()
		switch {
		case strings.HasSuffix(info.Key, "/") && info.Size == 0: // it stands for a folder
			continue
		case !manifest.IsImage(path.Base(name)):
			r.skip(image, manifest.SkipKind)
			continue
		case hiddenName(name):
			r.skip(image, manifest.SkipHidden)
			continue
		}
		row := manifest.Row{Name: name, Image: image, Modified: info.Modified}
		problem := func(err error) { row.Err = &manifest.FieldError{File: image, Err: err} }
		_, err := Parse(image)
		switch {
		case strings.ContainsRune(name, utf8.RuneError):
			problem(errReplacedName)
		case err != nil:
			problem(err)
		case info.Size == 0:
			problem(manifest.ErrEmptyFile)
		case info.Size > r.cfg.MaxBytes:
			problem(r.tooLarge(info.Size))
		}
		if err := emit(row); err != nil {
			return err
		}
	}
	return nil
}

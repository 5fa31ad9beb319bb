package dataset

import (
	"path"
	"strings"

	"ddiff/manifest"
)

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
		case hiddenName(name):
			continue
		case !manifest.IsImage(path.Base(name)):
			r.skip(image)
			continue
		}
		row := manifest.Row{Name: name, Image: image}
		problem := func(err error) { row.Err = &manifest.FieldError{File: image, Err: err} }
		switch {
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

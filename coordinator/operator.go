package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ddiff/coordinator/shard"
	"ddiff/internal/redact"
	"ddiff/manifest"
	"ddiff/restore/operator"
	"ddiff/storage"
)

// openOperators reads the outlines of the campaign's operator files. The first time it copies the files into the store, where
// workers find them. Later it reads those copies.
func (r *runner) openOperators(ctx context.Context) error {
	r.models.catalogue = r.s.cfg.Catalogue
	paths := r.rec.Spec.Operators()
	if len(paths) == 0 || r.s.cfg.run != nil { // the files of a Run are in its catalogue
		return nil
	}
	files, records := map[string]*operator.File{}, slices.Clone(r.rec.Operators)
	copied := false
	for _, path := range paths {
		i := slices.IndexFunc(records, func(f manifest.OperatorFile) bool { return f.Path == path })
		if i < 0 {
			i = len(records)
			records = append(records, manifest.OperatorFile{Path: path})
		}
		isNew := records[i].Key == ""
		f, err := r.openOperator(ctx, &records[i])
		if shard.IsUnavailable(err) {
			return r.awaitFile(ctx, "operator", err)
		}
		if err != nil {
			return err
		}
		files[path], copied = f, copied || isNew
	}
	r.reader.waiting.clear()
	r.models.catalogue = r.models.catalogue.WithFiles(&r.rec.Spec, files)
	if !copied {
		return nil
	}
	return r.save(ctx, func(c *manifest.Campaign) { c.Operators = records })
}

// openOperator reads one operator file: the store's copy if the record has a key, otherwise the file, which it copies into
// the store. If the store has lost its copy, it copies the file again. A file with another digest than the record's rejects
// the campaign. It reads one file at a time, as for priors, and drops the network.
func (r *runner) openOperator(ctx context.Context, rec *manifest.OperatorFile) (*operator.File, error) {
	release, err := r.s.priors.read(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	known, name := rec.Key != "", redact.Address(rec.Path)
	data, err := r.readModel(ctx, rec.Key, rec.Path, operator.Read)
	if known && errors.Is(err, storage.ErrNotFound) {
		r.log.Warn("the operator is missing from the store, copies it again", "operator", name, "key", rec.Key)
		known, rec.Key = false, ""
		data, err = r.readModel(ctx, rec.Key, rec.Path, operator.Read)
	}
	switch {
	case err != nil && (known || shard.IsUnavailable(err)):
		return nil, fmt.Errorf("read operator %s: %w", name, err)
	case err != nil:
		return nil, rejection{fmt.Errorf("operator %s: %w", name, err)}
	}
	f, err := operator.Load(name, data)
	if err != nil {
		return nil, rejection{err}
	}
	if rec.SHA256 != "" && f.SHA256 != rec.SHA256 {
		return nil, rejection{fmt.Errorf("operator %s: its digest is %.12s, the campaign was submitted with %.12s; submit the campaign again under another name",
			name, f.SHA256, rec.SHA256)}
	}
	if known {
		return f.Outline(), nil
	}
	rec.SHA256, rec.Key = f.SHA256, priorKey(f.SHA256)
	if err := r.copyModel(ctx, "operator "+name, f.SHA256, data); err != nil {
		return nil, err
	}
	return f.Outline(), nil
}

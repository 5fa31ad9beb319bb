package coordinator

import (
	"context"
	"slices"

	"ddiff/internal/coordinator/shard"
	"ddiff/internal/record"
	"ddiff/restore/operator"
)

// openOperators reads the outlines of the campaign's operator files. The first time it copies the files into the store, where
// workers find them. Later it reads those copies.
func (r *runner) openOperators(ctx context.Context) error {
	r.models.catalogue = r.s.cfg.Catalogue
	paths := r.rec.Spec.Operators()
	if len(paths) == 0 {
		return nil
	}
	files, records := map[string]*operator.File{}, slices.Clone(r.rec.Operators)
	copied := false
	for _, path := range paths {
		i := slices.IndexFunc(records, func(f record.OperatorFile) bool { return f.Path == path })
		if i < 0 {
			i = len(records)
			records = append(records, record.OperatorFile{Path: path})
		}
		isNew := records[i].Key == ""
		f, err := r.models.openOperator(ctx, &records[i])
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
	return r.save(ctx, func(c *record.Campaign) { c.Operators = records })
}

// openOperator reads one operator file, and drops its network.
func (s *models) openOperator(ctx context.Context, rec *record.OperatorFile) (*operator.File, error) {
	release, err := s.priors.read(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	var outline *operator.File
	m := modelFile{kind: "operator", path: rec.Path, key: rec.Key, sha256: rec.SHA256}
	err = s.read(ctx, &m, operator.Read, func(name string, data []byte) (string, error) {
		f, err := operator.Load(name, data)
		if err != nil {
			return "", err
		}
		outline = f.Outline()
		return f.SHA256, nil
	})
	rec.Key, rec.SHA256 = m.key, m.sha256
	return outline, err
}

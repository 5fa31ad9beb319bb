package coordinator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ddiff/manifest"
	"ddiff/restore/prior"
	"ddiff/storage"
)

// priorKey is the key under which the store has a prior for the workers.
func priorKey(sha256 string) string { return "priors/" + sha256 + ".onnx" }

// openPrior opens the campaign's prior. The first time it copies the prior into the store, where workers find it. Later
// it opens that copy.
func (r *runner) openPrior(ctx context.Context) error {
	if run := r.s.cfg.run; run != nil {
		r.prior = run.Prior
		return nil
	}
	if r.rec.Prior.SHA256 != "" {
		return r.reopenPrior(ctx)
	}
	name := r.rec.Spec.Prior
	data, err := r.readPrior(ctx, name)
	if err != nil {
		return rejection{fmt.Errorf("prior: %w", err)}
	}
	p, err := prior.Load(name, data)
	if err != nil {
		return rejection{err}
	}
	file := priorFile(p)
	if name != prior.Bundled {
		file.Key = priorKey(p.SHA256)
		if err := r.s.cfg.Store.Create(ctx, file.Key, data); err != nil && !errors.Is(err, storage.ErrExists) {
			return fmt.Errorf("copy prior %s into the store: %w", name, err)
		}
	}
	r.prior = p
	return r.save(ctx, func(c *manifest.Campaign) { c.Prior = file })
}

// priorFile describes a prior without its key.
func priorFile(p *prior.Prior) manifest.PriorFile {
	return manifest.PriorFile{SHA256: p.SHA256, Name: p.Card.Name, License: p.Card.License}
}

// readPrior reads a prior by its name, path or address.
func (r *runner) readPrior(ctx context.Context, name string) ([]byte, error) {
	if strings.Contains(name, "://") {
		return r.s.cfg.Sources.Get(ctx, name)
	}
	return prior.Read(name)
}

func (r *runner) reopenPrior(ctx context.Context) error {
	file := r.rec.Prior
	var data []byte
	var err error
	if file.Key == "" {
		data, err = prior.Read(prior.Bundled)
	} else {
		data, err = r.s.cfg.Store.Get(ctx, file.Key)
	}
	if err != nil {
		return fmt.Errorf("read prior %s: %w", file.Name, err)
	}
	p, err := prior.Load(file.Name, data)
	if err != nil {
		return rejection{err}
	}
	if p.SHA256 != file.SHA256 {
		return rejection{fmt.Errorf("prior %s: its digest is %.12s, the campaign began with %.12s; submit the campaign again",
			file.Name, p.SHA256, file.SHA256)}
	}
	r.prior = p
	return nil
}

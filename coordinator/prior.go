package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"ddiff/coordinator/shard"
	"ddiff/internal/redact"
	"ddiff/manifest"
	"ddiff/restore/prior"
	"ddiff/storage"
)

// priorKey is the key under which the store has a prior for the workers.
func priorKey(sha256 string) string { return manifest.PriorsFolder + sha256 + ".onnx" }

// priors has the descriptions of priors, each digest once. It reads one file at a time and drops the network, so that the
// leader's memory does not grow with the campaigns or their networks.
type priors struct {
	reading chan struct{} // has one element while a file is read

	mu     sync.Mutex
	byName map[string]*prior.Description // by digest, or prior.Bundled
}

func newPriors() *priors {
	return &priors{reading: make(chan struct{}, 1), byName: map[string]*prior.Description{}}
}

// open returns the description of the prior with a name, which read reads once. The name is the digest, or prior.Bundled. It is
// empty while the digest is unknown: open then reads the file.
func (p *priors) open(ctx context.Context, name string, read func(ctx context.Context) (*prior.Description, error)) (*prior.Description, error) {
	if d := p.known(name); d != nil {
		return d, nil
	}
	free, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	defer free()
	if d := p.known(name); d != nil { // read in the meantime
		return d, nil
	}
	d, err := read(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	name = cmp.Or(name, d.SHA256)
	if p.byName[name] == nil {
		p.byName[name] = d
	}
	return p.byName[name], nil
}

func (p *priors) known(name string) *prior.Description {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byName[name]
}

// read waits until no other file is read. The caller calls release after reading.
func (p *priors) read(ctx context.Context) (release func(), err error) {
	select {
	case p.reading <- struct{}{}:
		return func() { <-p.reading }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// models are the models of a campaign, without their networks.
type models struct {
	prior     *prior.Description
	catalogue shard.Catalogue // with the operator files of the campaign
}

// openPrior opens the description of the campaign's prior. The first time it copies the prior into the store, where workers find
// it. Later it reads that copy.
func (r *runner) openPrior(ctx context.Context) (err error) {
	if run := r.s.cfg.run; run != nil {
		r.models.prior = &run.Prior.Description
		return nil
	}
	known := r.rec.Prior.SHA256 != ""
	name := r.rec.Prior.SHA256
	if known && r.rec.Prior.Key == "" || !known && r.rec.Spec.Prior == prior.Bundled {
		name = prior.Bundled
	}
	read := r.readStoredPrior
	if !known {
		read = r.copyPrior
	}
	if err = r.keepPrior(ctx); err == nil {
		r.models.prior, err = r.s.priors.open(ctx, name, read)
	}
	if shard.IsUnavailable(err) {
		return r.awaitFile(ctx, "prior", err)
	}
	if err != nil {
		return err
	}
	r.reader.waiting.clear()
	if known {
		return r.checkPrior(r.models.prior)
	}
	file := priorFile(r.models.prior)
	if name != prior.Bundled {
		file.Key = priorKey(r.models.prior.SHA256)
	}
	return r.save(ctx, func(c *manifest.Campaign) { c.Prior = file })
}

// keepPrior copies the prior of a campaign that has begun into the store again if the store has lost it: workers need it.
func (r *runner) keepPrior(ctx context.Context) error {
	key := r.rec.Prior.Key
	if key == "" {
		return nil
	}
	_, err := r.s.cfg.Store.Stat(ctx, key)
	if !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	free, err := r.s.priors.read(ctx)
	if err != nil {
		return err
	}
	defer free()
	r.log.Warn("the prior is missing from the store, copies it again", "prior", r.rec.Prior.Name, "key", key)
	_, err = r.copyPrior(ctx)
	return err
}

// priorFile describes a prior without its key.
func priorFile(d *prior.Description) manifest.PriorFile {
	return manifest.PriorFile{SHA256: d.SHA256, Name: d.Card.Name, License: d.Card.License}
}

// checkPrior rejects the campaign if its prior differs from the one with which it began or was submitted.
func (r *runner) checkPrior(d *prior.Description) error {
	began, submitted := r.rec.Prior, r.rec.PriorSHA256
	switch {
	case began.SHA256 != "" && d.SHA256 != began.SHA256:
		return rejection{fmt.Errorf("prior %s: its digest is %.12s, the campaign began with %.12s; submit the campaign again",
			began.Name, d.SHA256, began.SHA256)}
	case began.SHA256 == "" && submitted != "" && d.SHA256 != submitted:
		return rejection{fmt.Errorf("prior %s: its digest is %.12s, the campaign was submitted with %.12s; submit the campaign again under another name",
			d.File, d.SHA256, submitted)}
	}
	return nil
}

// copyPrior reads the prior from the campaign's path, checks its digest if it is known, and copies it into the store.
func (r *runner) copyPrior(ctx context.Context) (*prior.Description, error) {
	path := r.rec.Spec.Prior
	name := redact.Address(path)
	data, err := r.readModel(ctx, "", path, prior.Read)
	if shard.IsUnavailable(err) {
		return nil, fmt.Errorf("read prior %s: %w", name, err)
	}
	if err != nil {
		return nil, rejection{fmt.Errorf("prior: %w", err)}
	}
	d, err := describePrior(name, data)
	if err == nil {
		err = r.checkPrior(d)
	}
	if err != nil || name == prior.Bundled {
		return d, err
	}
	return d, r.copyModel(ctx, "prior "+name, d.SHA256, data)
}

// copyModel copies a prior or an operator file into the store. A file above the limit of the store rejects the campaign.
func (r *runner) copyModel(ctx context.Context, what, sha256 string, data []byte) error {
	err := r.s.cfg.Store.Create(ctx, priorKey(sha256), data)
	if err == nil || errors.Is(err, storage.ErrExists) {
		r.log.Info("workers find the file in the store", "file", what, "sha256", sha256[:12])
		return nil
	}
	wrapped := fmt.Errorf("copy %s into the store: %w", what, err)
	if errors.Is(err, storage.ErrTooLarge) {
		return rejection{wrapped}
	}
	return wrapped
}

// readModel reads a prior or an operator file: the copy in the store if it has a key, otherwise the file at an address or, with
// local, at a path.
func (r *runner) readModel(ctx context.Context, key, path string, local func(path string) ([]byte, error)) ([]byte, error) {
	switch {
	case key != "":
		return r.s.cfg.Store.Get(ctx, key)
	case strings.Contains(path, "://"):
		return r.s.cfg.Models.Get(ctx, path)
	}
	return local(path)
}

// readStoredPrior reads the prior of a campaign that has begun.
func (r *runner) readStoredPrior(ctx context.Context) (*prior.Description, error) {
	file := r.rec.Prior
	data, err := r.readModel(ctx, file.Key, prior.Bundled, prior.Read)
	if err != nil {
		return nil, fmt.Errorf("read prior %s: %w", file.Name, err)
	}
	d, err := describePrior(file.Name, data)
	if err != nil {
		return nil, err
	}
	return d, r.checkPrior(d)
}

// describePrior parses a prior and drops its network.
func describePrior(name string, data []byte) (*prior.Description, error) {
	p, err := prior.Load(name, data)
	if err != nil {
		return nil, rejection{err}
	}
	d := p.Description
	return &d, nil
}

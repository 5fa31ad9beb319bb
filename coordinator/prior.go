package coordinator

import (
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

// priors has the descriptions of the priors of all open campaigns, each digest once. It reads one file at a time and
// drops the network, so that the leader's memory does not grow with the campaigns or their networks.
type priors struct {
	reading chan struct{} // has one element while a file is read

	mu     sync.Mutex
	byName map[string]*sharedPrior // by digest, or prior.Bundled
}

// sharedPrior is a description and the number of campaigns that use it.
type sharedPrior struct {
	*prior.Description
	users int
}

func newPriors() *priors {
	return &priors{reading: make(chan struct{}, 1), byName: map[string]*sharedPrior{}}
}

// acquire returns the description of the prior with a name, which read reads if no open campaign has it. The name is
// the digest, or prior.Bundled. It is empty while the digest is unknown: acquire then reads the file and shares the
// description with campaigns that know the digest. The caller calls release once.
func (p *priors) acquire(ctx context.Context, name string, read func(ctx context.Context) (*prior.Description, error)) (
	d *prior.Description, release func(), err error,
) {
	if shared := p.use(name, nil); shared != nil {
		return shared.Description, p.releaser(name), nil
	}
	free, err := p.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer free()
	if shared := p.use(name, nil); shared != nil { // read in the meantime
		return shared.Description, p.releaser(name), nil
	}
	if d, err = read(ctx); err != nil {
		return nil, nil, err
	}
	if name == "" {
		name = d.SHA256
	}
	return p.use(name, d).Description, p.releaser(name), nil
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

// use counts a user of the description with a name. Without such a description it shares d, or returns nil if d is nil.
func (p *priors) use(name string, d *prior.Description) *sharedPrior {
	p.mu.Lock()
	defer p.mu.Unlock()
	shared := p.byName[name]
	if shared == nil {
		if d == nil {
			return nil
		}
		shared = &sharedPrior{Description: d}
		p.byName[name] = shared
	}
	shared.users++
	return shared
}

// releaser returns a function that drops the description with a name after its last user.
func (p *priors) releaser(name string) func() {
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		shared := p.byName[name]
		if shared.users--; shared.users == 0 {
			delete(p.byName, name)
		}
	})
}

// models are the models of a campaign, without their networks.
type models struct {
	prior     *prior.Description
	release   func()          // of prior; nil before it is open
	catalogue shard.Catalogue // with the operator files of the campaign
}

// openPrior opens the description of the campaign's prior until models.release is called. The first time it copies the prior into
// the store, where workers find it. Later it reads that copy.
func (r *runner) openPrior(ctx context.Context) (err error) {
	if run := r.s.cfg.run; run != nil {
		r.models.prior, r.models.release = &run.Prior.Description, func() {}
		return nil
	}
	known := r.rec.Prior.SHA256 != ""
	name := r.rec.Prior.SHA256
	switch {
	case known && r.rec.Prior.Key == "", !known && r.rec.Spec.Prior == prior.Bundled:
		name = prior.Bundled
	}
	read := r.readStoredPrior
	if !known {
		read = r.copyPrior
	}
	if err = r.keepPrior(ctx); err == nil {
		r.models.prior, r.models.release, err = r.s.priors.acquire(ctx, name, read)
	}
	if shard.IsUnavailable(err) {
		return r.awaitFile(ctx, "prior", err)
	}
	if err != nil {
		return err
	}
	r.reader.waiting.clear()
	if known {
		return checkPrior(r.models.prior, r.rec.Prior)
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

// checkSubmitted rejects the campaign if its prior differs from the one with which it was submitted or began.
func (r *runner) checkSubmitted(d *prior.Description) error {
	if r.rec.Prior.SHA256 != "" {
		return checkPrior(d, r.rec.Prior)
	}
	if want := r.rec.PriorSHA256; want != "" && d.SHA256 != want {
		return rejection{fmt.Errorf("prior %s: its digest is %.12s, the campaign was submitted with %.12s; submit the campaign again under another name",
			d.File, d.SHA256, want)}
	}
	return nil
}

// checkPrior rejects the campaign if its prior differs from the one with which it began.
func checkPrior(d *prior.Description, file manifest.PriorFile) error {
	if d.SHA256 != file.SHA256 {
		return rejection{fmt.Errorf("prior %s: its digest is %.12s, the campaign began with %.12s; submit the campaign again",
			file.Name, d.SHA256, file.SHA256)}
	}
	return nil
}

// copyPrior reads the prior from the campaign's path, checks its digest if it is known, and copies it into the store.
func (r *runner) copyPrior(ctx context.Context) (*prior.Description, error) {
	path := r.rec.Spec.Prior
	name := redact.Address(path)
	data, err := r.readPrior(ctx, path)
	if shard.IsUnavailable(err) {
		return nil, fmt.Errorf("read prior %s: %w", name, err)
	}
	if err != nil {
		return nil, rejection{fmt.Errorf("prior: %w", err)}
	}
	d, err := describePrior(name, data)
	if err == nil {
		err = r.checkSubmitted(d)
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

// readPrior reads a prior by its name, path or address.
func (r *runner) readPrior(ctx context.Context, name string) ([]byte, error) {
	if strings.Contains(name, "://") {
		return r.s.cfg.Models.Get(ctx, name)
	}
	return prior.Read(name)
}

// readStoredPrior reads the prior of a campaign that has begun.
func (r *runner) readStoredPrior(ctx context.Context) (d *prior.Description, err error) {
	file := r.rec.Prior
	var data []byte
	if file.Key == "" {
		data, err = prior.Read(prior.Bundled)
	} else {
		data, err = r.s.cfg.Store.Get(ctx, file.Key)
	}
	if err != nil {
		return nil, fmt.Errorf("read prior %s: %w", file.Name, err)
	}
	if d, err = describePrior(file.Name, data); err != nil {
		return nil, err
	}
	return d, checkPrior(d, file)
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

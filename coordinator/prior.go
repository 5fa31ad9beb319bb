package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"ddiff/internal/coordinator/shard"
	"ddiff/internal/record"
	"ddiff/internal/redact"
	"ddiff/internal/restore/prior"
	"ddiff/manifest"
	"ddiff/storage"
)

// priorKey is the key under which the store has a prior for the workers.
func priorKey(sha256 string) string { return record.PriorsFolder + sha256 + ".onnx" }

// priors has the descriptions of priors, each digest once. It reads one file at a time and drops the network, so that the
// leader's memory does not grow with the campaigns or their networks.
type priors struct {
	reading chan struct{} // has one element while a file is read
	byName  sync.Map      // *prior.Description by digest
}

func newPriors() *priors {
	return &priors{reading: make(chan struct{}, 1)}
}

// bundled describes the bundled prior.
var bundled = sync.OnceValues(func() (*prior.Description, error) {
	p, err := prior.Open(prior.Bundled)
	if err != nil {
		return nil, err
	}
	description := p.Description // without the network
	return &description, nil
})

// open returns the description of the prior with a digest, which read reads once. Without a digest, which is unknown, open reads the
// file.
func (p *priors) open(ctx context.Context, name string, read func(ctx context.Context) (*prior.Description, error)) (*prior.Description, error) {
	if d, known := p.byName.Load(name); known {
		return d.(*prior.Description), nil
	}
	free, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	defer free()
	if d, known := p.byName.Load(name); known { // read in the meantime
		return d.(*prior.Description), nil
	}
	d, err := read(ctx)
	if err != nil {
		return nil, err
	}
	known, _ := p.byName.LoadOrStore(cmp.Or(name, d.SHA256), d)
	return known.(*prior.Description), nil
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
	catalogue manifest.Catalogue // with the operator files of the campaign

	store  storage.Store // has a copy of each file for the workers
	files  sources       // reads files at addresses
	priors *priors
	log    *slog.Logger
}

// openPrior opens the description of the campaign's prior. The first time it copies the prior into the store, where workers find
// it. Later it reads that copy.
func (r *runner) openPrior(ctx context.Context) (err error) {
	began := r.rec.Prior
	file := modelFile{kind: "prior", path: r.rec.Spec.Prior, key: began.Key, sha256: began.SHA256}
	if file.path == prior.Bundled {
		r.models.prior, err = bundled()
	} else {
		digest := ""
		if began.Opened() {
			digest = began.SHA256
		}
		r.models.prior, err = r.models.openPrior(ctx, &file, digest)
	}
	if shard.IsUnavailable(err) {
		return r.awaitFile(ctx, file.kind, err)
	}
	if err == nil {
		err = file.check(r.models.prior.SHA256)
	}
	if err != nil {
		return err
	}
	r.reader.waiting.clear()
	if began.Opened() {
		return nil
	}
	next := priorFile(r.models.prior)
	next.Key = file.key
	return r.save(ctx, func(c *record.Campaign) { c.Prior = next })
}

// openPrior opens a prior file with a digest, "" while it is unknown.
func (s *models) openPrior(ctx context.Context, file *modelFile, digest string) (*prior.Description, error) {
	if file.key != "" {
		_, err := s.store.Stat(ctx, file.key)
		if errors.Is(err, storage.ErrNotFound) {
			digest = "" // workers need it: read copies it again
		} else if err != nil {
			return nil, err
		}
	}
	return s.priors.open(ctx, digest, func(ctx context.Context) (d *prior.Description, err error) {
		err = s.read(ctx, file, prior.Read, func(name string, data []byte) (string, error) {
			p, err := prior.Load(name, data)
			if err != nil {
				return "", err
			}
			description := p.Description // without the network
			d = &description
			return d.SHA256, nil
		})
		return d, err
	})
}

// priorFile describes a prior without its key.
func priorFile(d *prior.Description) record.PriorFile {
	return record.PriorFile{SHA256: d.SHA256, Name: d.Card.Name, License: d.Card.License}
}

// modelFile is a prior or an operator file of a campaign.
type modelFile struct {
	kind string // "prior" or "operator"
	path string // that the campaign states
	// key is that of the copy in the store, "" without one. sha256 is "" until it is known.
	key, sha256 string
}

// check rejects the campaign if the file has another digest than the one with which it began or was submitted.
func (m *modelFile) check(sha256 string) error {
	if m.sha256 == "" || m.sha256 == sha256 {
		return nil
	}
	return rejection{fmt.Errorf("%s %s: its digest is %.12s, the campaign was submitted with %.12s; submit the campaign again under another name",
		m.kind, redact.Address(m.path), sha256, m.sha256)}
}

// read reads a model: the copy in the store if it has a key, otherwise the file at an address or, with local, at a path, which
// it copies into the store. A copy that the store has lost is made again. parse returns the digest of the file. A file that cannot be
// used rejects the campaign; an environment that does not answer is another error. The caller reads one model at a time.
func (s *models) read(
	ctx context.Context, m *modelFile, local func(path string) ([]byte, error), parse func(name string, data []byte) (sha256 string, err error),
) (err error) {
	var data []byte
	name := redact.Address(m.path)
	if m.key != "" {
		data, err = s.store.Get(ctx, m.key)
		if errors.Is(err, storage.ErrNotFound) {
			s.log.Warn("the "+m.kind+" is missing from the store, copies it again", m.kind, name, "key", m.key)
			m.key = ""
		}
	}
	known := m.key != ""
	switch {
	case known:
	case strings.Contains(m.path, "://"):
		data, err = s.files.Get(ctx, m.path)
	default:
		data, err = local(m.path)
	}
	switch {
	case err != nil && (known || shard.IsUnavailable(err)):
		return fmt.Errorf("read %s %s: %w", m.kind, name, err)
	case err != nil:
		return rejection{fmt.Errorf("%s %s: %w", m.kind, name, err)}
	}
	digest, err := parse(name, data)
	if err != nil {
		return rejection{err}
	}
	if err := m.check(digest); err != nil || known {
		return err
	}
	m.sha256 = digest
	m.key = priorKey(digest)
	return s.copy(ctx, m.kind+" "+name, digest, data)
}

// copy copies a prior or an operator file into the store. A file above the limit of the store rejects the campaign.
func (s *models) copy(ctx context.Context, what, sha256 string, data []byte) error {
	err := s.store.Create(ctx, priorKey(sha256), data)
	if err == nil || errors.Is(err, storage.ErrExists) {
		s.log.Info("workers find the file in the store", "file", what, "sha256", sha256[:12])
		return nil
	}
	wrapped := fmt.Errorf("copy %s into the store: %w", what, err)
	if errors.Is(err, storage.ErrTooLarge) {
		return rejection{wrapped}
	}
	return wrapped
}

package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/restore/prior"
	"ddiff/storage"
)

// priorKey is where the store has a prior for the workers.
func priorKey(sha256 string) string { return "priors/" + sha256 + ".onnx" }

// openPrior opens the campaign's prior. At the first time it is read from where the campaign
// says, and copied into the store, where workers find it; from then on the copy counts.
func (r *runner) openPrior(ctx context.Context) error {
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
	file := manifest.PriorFile{SHA256: p.SHA256, Name: p.Card.Name, License: p.Card.License}
	if name != prior.Bundled {
		file.Key = priorKey(p.SHA256)
		if err := r.s.cfg.Store.Create(ctx, file.Key, data); err != nil && !errors.Is(err, storage.ErrExists) {
			return fmt.Errorf("copy prior %s into the store: %w", name, err)
		}
	}
	r.prior = p
	return r.save(ctx, func(c *manifest.Campaign) { c.Prior = file })
}

// readPrior reads a prior by name, by path, or from where datasets are read.
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
		return rejection{fmt.Errorf("prior %s: it was %.12s when the campaign began and is %.12s now; submit the campaign anew",
			file.Name, file.SHA256, p.SHA256)}
	}
	r.prior = p
	return nil
}

// restore makes the ledger from the windows in storage, and from what was taken back.
func (r *runner) restore(ctx context.Context) error {
	r.stored, r.next, r.whole, r.first = 0, shard.Position{}, false, nil
	err := r.each(ctx, func(w *shard.Window) error {
		if w.Campaign != r.id || w.Number != r.stored || w.Item != r.next.Item {
			return fmt.Errorf("window %d in storage does not follow the one before it; remove %s and submit the campaign anew",
				r.stored, shard.Prefix(r.id))
		}
		r.expect(w)
		return nil
	})
	if err != nil {
		return err
	}
	r.doubtful = r.stored
	return r.restoreRounds(ctx)
}

// each calls f with the windows in storage, in order.
func (r *runner) each(ctx context.Context, f func(w *shard.Window) error) error {
	for info, err := range r.s.cfg.Store.List(ctx, shard.Prefix(r.id)) {
		if err != nil {
			return fmt.Errorf("list windows: %w", err)
		}
		w, err := r.window(ctx, info.Key)
		if err != nil {
			return err
		}
		if err := f(w); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) window(ctx context.Context, key string) (*shard.Window, error) {
	data, err := r.s.cfg.Store.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read window: %w", err)
	}
	w, err := shard.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return w, nil
}

// expect enters a window that is in storage.
func (r *runner) expect(w *shard.Window) {
	for _, it := range w.Items {
		r.ledger.expect(it.ID)
	}
	for _, f := range w.Failed {
		r.ledger.expect(f.Item.ID)
		r.ledger.settle(f.Item.ID, 0, failed, f.Reason)
	}
	if w.Number == 0 && !r.rec.Released {
		r.first = w
	}
	r.stored, r.next, r.whole = w.Number+1, w.Next(), w.Last
}

// made is a window that the sharder made, or what is wrong with the dataset.
type made struct {
	window *shard.Window
	err    error
}

// openSharder begins to make the windows that storage does not have yet, one ahead.
func (r *runner) openSharder(ctx context.Context) error {
	sharder, err := shard.New(shard.Config{
		Spec: &r.rec.Spec, Prior: r.prior, Sources: r.s.cfg.Sources, Rows: r.s.cfg.Rows, Now: r.s.cfg.Now,
		Skipped: func(path string) { r.log.Debug("no image", "path", path) },
	})
	if err != nil {
		return err
	}
	r.sharder, r.windows = sharder, nil
	if r.whole {
		return nil
	}
	windows := make(chan made)
	r.windows = windows
	go func() {
		for w, err := range sharder.Windows(ctx, r.next) {
			select {
			case windows <- made{w, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

// theirFault tells whether an error of the dataset is the campaign's, and not one of a
// network or a disk, which passes.
func theirFault(err error) bool {
	return errors.Is(err, manifest.ErrNoDataset) || errors.Is(err, manifest.ErrEmptyDataset) || errors.Is(err, manifest.ErrBadList)
}

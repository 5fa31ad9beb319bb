package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ddiff/manifest"
)

// Service runs the campaigns of a cluster. Make it with New.
type Service struct {
	cfg     Config
	workers workers
}

// New checks the configuration.
func New(cfg Config) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure coordinator: %w", err)
	}
	return &Service{cfg: cfg.withDefaults()}, nil
}

// restartAfter is the pause before a campaign is taken up again after an error.
const restartAfter = 3 * time.Second

// Lead runs all campaigns until ctx ends, which is no error. Only one service may lead at a
// time; should two do so for a moment, compare-and-swap and create-only writes keep the
// records and the windows right.
func (s *Service) Lead(ctx context.Context) error {
	if err := s.recall(ctx); err != nil {
		return ended(ctx, err)
	}
	data, err := json.Marshal(manifest.Cluster{Schema: manifest.RecordSchema, Store: s.cfg.StoreAddress, AckWait: s.cfg.AckWait})
	if err != nil {
		return err
	}
	if err := s.cfg.Board.Put(ctx, manifest.KeyCluster, data); err != nil {
		return ended(ctx, fmt.Errorf("tell the cluster's store: %w", err))
	}
	group, inner := errgroup.WithContext(ctx)
	if s.cfg.Sweep != nil {
		group.Go(func() error { return s.cfg.Sweep(inner) })
	}
	group.Go(func() error { return s.workers.count(inner, s.cfg) })
	group.Go(func() error { return s.watch(inner, group) })
	return ended(ctx, group.Wait())
}

// ended drops the error of a context that was meant to end.
func ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// watch starts a runner for each campaign that has something to do, and tells it of changes.
func (s *Service) watch(ctx context.Context, group *errgroup.Group) error {
	runners := desk{under: map[string]*runner{}}
	for change, err := range s.cfg.Board.Watch(ctx, manifest.KeyCampaignPrefix) {
		if err != nil {
			return fmt.Errorf("watch campaigns: %w", err)
		}
		if change.Ready {
			continue
		}
		id := strings.TrimPrefix(change.Key, manifest.KeyCampaignPrefix)
		if change.Deleted {
			runners.stop(id)
			continue
		}
		c, err := parse(change.Data)
		if err != nil {
			s.cfg.Logger.Error("cannot run a campaign", "campaign", id, "reason", err)
			continue
		}
		r, begun := runners.tell(c, change.Revision, func() *runner { return newRunner(s, c) })
		if begun {
			group.Go(func() error {
				s.attend(ctx, r, &runners)
				return nil
			})
		}
	}
	return nil
}

// attend runs one campaign until it has ended; an error, such as storage that does not
// answer, is worth another try.
func (s *Service) attend(ctx context.Context, r *runner, d *desk) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.mu.Lock()
	r.cancel = cancel
	r.mu.Unlock()
	for {
		c := d.next(r)
		if c == nil {
			return // it has ended, and nobody wants anything more
		}
		err := r.run(ctx, c)
		if ctx.Err() != nil {
			d.remove(r)
			return
		}
		if err != nil {
			r.log.Error("campaign was interrupted, will go on", "after", restartAfter, "reason", err)
			select {
			case <-ctx.Done():
				d.remove(r)
				return
			case <-time.After(restartAfter):
			}
			r.again()
		}
	}
}

// desk has the runners of the campaigns that are under way.
type desk struct {
	mu    sync.Mutex
	under map[string]*runner
}

// tell hands a record to the campaign's runner; when there is none and the campaign has
// something to do, it makes one.
func (d *desk) tell(c *manifest.Campaign, revision uint64, make func() *runner) (r *runner, begun bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, ok := d.under[c.ID]
	if !ok {
		if !active(c) {
			return nil, false
		}
		r = make()
		d.under[c.ID] = r
	}
	r.offer(c, revision)
	return r, !ok
}

// next gives the record that a runner goes on with. Without one the runner has ended: it is
// forgotten, so that the next record makes a new one.
func (d *desk) next(r *runner) *manifest.Campaign {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := r.take()
	if c == nil {
		delete(d.under, r.id)
	}
	return c
}

// remove forgets a runner that was stopped.
func (d *desk) remove(r *runner) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.under, r.id)
}

// stop ends the runner of a campaign that was deleted.
func (d *desk) stop(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r, ok := d.under[id]; ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.cancel != nil {
			r.cancel()
		}
	}
}

// active tells whether a coordinator has anything to do for a campaign.
func active(c *manifest.Campaign) bool {
	switch {
	case len(c.Commands) > 0, !c.Phase.Ended():
		return true
	case c.Phase == manifest.PhaseFinished:
		return false
	}
	return c.Wanted == manifest.WantRun // somebody resumes what was cancelled or rejected
}

// workers knows how many workers there are.
type workers struct {
	mu sync.Mutex
	n  int
}

// beatLife is how long a worker counts after its last beat.
const beatLife = 30 * time.Second

func (w *workers) seen() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// count looks for workers from time to time. Beats of workers that are long gone are removed.
func (w *workers) count(ctx context.Context, cfg Config) error {
	tick := time.NewTicker(5 * cfg.Tick)
	defer tick.Stop()
	warned := map[string]bool{}
	for {
		beats, err := Workers(ctx, cfg.Board)
		if err != nil && ctx.Err() == nil {
			cfg.Logger.Warn("could not look for workers", "reason", err)
		}
		if err == nil {
			n := 0
			for key, b := range beats {
				age := cfg.Now().Sub(b.At)
				switch {
				case age < beatLife:
					n++
				case age > 20*beatLife:
					err = errors.Join(err, cfg.Board.Delete(ctx, key))
				}
				if b.Schema != manifest.RecordSchema && !warned[b.Name] {
					warned[b.Name] = true
					cfg.Logger.Warn("a worker of another version is here; use one version of ddiff everywhere",
						"worker", b.Name, "version", b.Version, "schema", b.Schema, "here", manifest.RecordSchema)
				}
			}
			w.mu.Lock()
			w.n = n
			w.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

package coordinator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"ddiff/coordinator/archive"
	"ddiff/coordinator/board"
	"ddiff/coordinator/health"
	"ddiff/internal/lifecycle"
	"ddiff/internal/retry"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/item"
	"ddiff/storage"
)

// Service runs the campaigns of a cluster. Create it with New.
type Service struct {
	cfg     Config
	owner   board.Owner
	workers health.Workers
	priors  *priors
	health  *health.Checker
	streams health.Streams
	gauges  gauges
	audit   audit
	// accounts has what owners have used.
	accounts accounts
	archive  *archive.Archiver // of the present term
	// suspects has room for one campaign that may have ended a coordinator in its start.
	suspects chan struct{}
}

// New checks the configuration.
func New(cfg Config) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure coordinator: %w", err)
	}
	cfg = cfg.withDefaults()
	return &Service{
		owner: board.Owner{
			Board: cfg.Board, Store: cfg.Store, Record: manifest.Cluster{Schema: manifest.RecordSchema, Store: cfg.StoreAddress, AckWait: cfg.AckWait},
			Coordinator: cfg.Name, TakeOver: cfg.TakeOver, Interval: 2 * cfg.Probe, Now: cfg.Now, Logger: cfg.Logger,
		},
		cfg: cfg, priors: newPriors(), health: health.New(cfg.health()), suspects: make(chan struct{}, 1),
	}, nil
}

// CheckHealth checks the store periodically until ctx ends, and publishes the result on the board for the other
// coordinators. It runs in every coordinator, whether it leads or not, beside the election.
func (s *Service) CheckHealth(ctx context.Context) error {
	stop, err := s.cfg.Metrics.ObserveStanding(s.health.Standing)
	if err != nil {
		return err
	}
	defer stop() //nolint:errcheck // the registration is known
	defer lifecycle.Go(ctx, s.owner.Learn).Stop()
	return s.health.Check(ctx)
}

// Fit reports whether this coordinator may lead: it can use the store, or no other coordinator can.
func (s *Service) Fit() bool { return s.health.Fit() }

// Ready returns the reason why this coordinator could not lead: it cannot use the store, or does not know yet. A coordinator
// that waits for another one to lead is ready.
func (s *Service) Ready() error { return s.health.Ready() }

// Lead runs all campaigns until ctx ends, which is not an error. It outlasts outages of the store. It returns
// [queue.ErrStepDown] when this coordinator cannot use the store and another one can, see [Service.CheckHealth]. Only one
// service may lead at a time. If two lead for a moment, compare-and-swap and create-only writes protect records and
// windows.
func (s *Service) Lead(ctx context.Context) (err error) {
	if _, err := s.owner.Claim(ctx); err != nil {
		return ignoreCancelled(ctx, fmt.Errorf("claim the store: %w", err))
	}
	stop, err := s.cfg.Metrics.Observe(s.clusterState)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for _, outcome := range []item.Outcome{item.OutcomeDone, item.OutcomeFailed, item.OutcomeDead} {
		s.cfg.Metrics.Settle(ctx, string(outcome), 0) // an increase from nothing is none in Prometheus
	}
	all := &runners{byID: map[string]*runner{}}
	s.audit.reset()
	s.accounts.reset()
	group, inner := errgroup.WithContext(ctx)
	if s.cfg.Sweep != nil {
		group.Go(func() error { return s.cfg.Sweep(inner) })
	}
	group.Go(func() error { return s.owner.Guard(inner) })
	group.Go(func() error { return s.workers.Watch(inner, s.cfg.health()) })
	group.Go(func() error { return s.health.Guard(inner) })
	if s.cfg.Usage != nil {
		group.Go(func() error { return s.streams.Watch(inner, s.cfg.health()) })
	}
	if s.cfg.Notifier != nil {
		group.Go(func() error { return s.cfg.Notifier.Run(inner) })
	}
	s.archive = s.newArchiver(all)
	group.Go(func() error { return s.archive.Run(inner) })
	group.Go(func() error { return s.cfg.Board.Answer(inner, s.archive.Answer) })
	group.Go(func() error { return s.keepTokens(inner) })
	group.Go(func() error { return s.reviseTokens(inner, 2*s.cfg.Probe) })
	group.Go(func() error { return s.watch(inner, group, all) })
	return ignoreCancelled(ctx, group.Wait())
}

// ignoreCancelled drops err when ctx has ended.
func ignoreCancelled(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// watch starts a runner for each active campaign and delivers changed records to it.
func (s *Service) watch(ctx context.Context, group *errgroup.Group, all *runners) error {
	for change, err := range s.cfg.Board.WatchClosely(ctx, manifest.KeyCampaignPrefix) {
		if err != nil {
			return fmt.Errorf("watch campaigns: %w", err)
		}
		if change.Ready {
			continue
		}
		id := strings.TrimPrefix(change.Key, manifest.KeyCampaignPrefix)
		if change.Deleted {
			all.stop(id)
			s.gauges.remove(id) // the series of an ended campaign
			s.audit.forget(id)
			continue
		}
		c, err := manifest.DecodeCampaign(id, change.Data)
		if err != nil {
			s.cfg.Logger.Error("cannot run campaign", "campaign", id, "reason", err)
			s.restoreRecord(ctx, id, change)
			continue
		}
		s.audit.hear(s.cfg.Logger, c)
		if change.Back {
			all.restart(c, change.Revision)
		}
		r, created := all.deliver(c, change.Revision, func() *runner { return newRunner(s, c) })
		if created {
			group.Go(func() error {
				s.supervise(ctx, r, all)
				return nil
			})
		}
	}
	return nil
}

// restoreRecord replaces a damaged record by the copy of its last phase in the store, if there is one. The record of a newer
// version of ddiff is not damaged.
func (s *Service) restoreRecord(ctx context.Context, id string, damaged queue.Change) {
	var version struct{ Schema int }
	if json.Unmarshal(damaged.Data, &version) == nil && version.Schema > manifest.RecordSchema {
		return
	}
	c, err := board.Load(ctx, s.cfg.Store, id)
	if errors.Is(err, storage.ErrNotFound) {
		return
	}
	var data []byte
	if err == nil {
		data, err = json.Marshal(c)
	}
	if err == nil {
		_, err = s.cfg.Board.Update(ctx, damaged.Key, data, damaged.Revision)
	}
	if err != nil {
		s.cfg.Logger.Error("could not restore the record of a campaign", "campaign", id, "reason", err)
		return
	}
	s.cfg.Logger.Warn("restored the record of a campaign from the store", "campaign", id, "phase", c.Phase)
}

// supervise runs one campaign until it has ended. After an error, such as an outage of the store, it tries again.
func (s *Service) supervise(ctx context.Context, r *runner, all *runners) {
	defer func() {
		if ctx.Err() == nil && r.rec != nil && r.status.last.Phase.Ended() {
			s.gauges.end(r.status.last, s.cfg.Now())
		} else {
			s.gauges.remove(r.id)
		}
	}()
	for c := all.next(r); c != nil; c = all.next(r) {
		s.runOnce(ctx, r, c)
		if ctx.Err() != nil {
			all.remove(r)
			return
		}
	}
}

// runOnce runs a campaign until it has ended, was deleted, or failed. After a failure it waits for Config.Restart.
func (s *Service) runOnce(ctx context.Context, r *runner, c *manifest.Campaign) {
	ctx, cancel := r.begin(ctx)
	defer cancel()
	err := r.run(ctx, c)
	if ctx.Err() == nil && err != nil {
		s.health.Suspect()
		r.log.Error("campaign was interrupted, will retry", "after", s.cfg.Restart, "reason", err)
		if !errors.Is(err, errPhaseChanged) {
			r.status.interrupt(ctx, err, cmp.Or(s.problem(), r.reader.waiting.reason()))
		}
		_ = retry.Sleep(ctx, s.cfg.Restart) // the caller checks its context
	}
	if ctx.Err() != nil {
		r.rec = nil // the campaign was deleted
	}
}

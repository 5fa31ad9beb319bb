package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"ddiff/internal/coordinator/archive"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/health"
	"ddiff/internal/lifecycle"
	"ddiff/internal/record"
	"ddiff/internal/retry"
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
	// accounts has what owners have used.
	accounts accounts
	// Those of the present term:
	writer  *board.Writer
	archive *archive.Archiver
	all     *runners
	answers answers
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
			Board: cfg.Board, Store: cfg.Store, Record: record.Cluster{Schema: record.Schema, Store: cfg.StoreAddress, AckWait: cfg.AckWait},
			Coordinator: cfg.Name, TakeOver: cfg.TakeOver, Interval: 2 * cfg.Probe, Now: cfg.Now, Logger: cfg.Logger,
		},
		cfg: cfg, priors: newPriors(), health: health.New(cfg.health()), suspects: make(chan struct{}, 1), writer: board.NewWriter(cfg.Board, cfg.Store),
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
	s.accounts.reset()
	group, inner := errgroup.WithContext(ctx)
	s.writer = board.NewWriter(s.cfg.Board, s.cfg.Store)
	s.all = newRunners(func(c *record.Campaign) *runner { return newRunner(s, c) }, func(r *runner) {
		group.Go(func() error {
			s.supervise(inner, r)
			return nil
		})
	})
	s.archive = s.newArchiver()
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
	group.Go(func() error { return s.archive.Run(inner) })
	group.Go(func() error { return s.keepTokens(inner, 2*s.cfg.Probe) })
	group.Go(func() error {
		return s.watch(inner, func() {
			group.Go(func() error { return s.cfg.Board.Answer(inner, s.answer) })
		})
	})
	return ignoreCancelled(ctx, group.Wait())
}

// ignoreCancelled drops err when ctx has ended.
func ignoreCancelled(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// watch starts a runner for each active campaign and delivers changed records to it. It calls begun when it has seen all campaigns.
func (s *Service) watch(ctx context.Context, begun func()) error {
	for change, err := range s.cfg.Board.WatchClosely(ctx, record.KeyCampaignPrefix) {
		if err != nil {
			return fmt.Errorf("watch campaigns: %w", err)
		}
		if change.Ready {
			begun()
			continue
		}
		id := strings.TrimPrefix(change.Key, record.KeyCampaignPrefix)
		if change.Deleted {
			s.all.stop(id)
			s.gauges.remove(id) // the series of an ended campaign
			continue
		}
		c, err := record.DecodeCampaign(id, change.Data)
		if err != nil {
			s.cfg.Logger.Error("cannot run campaign", "campaign", id, "reason", err)
		}
		if err != nil || s.writer.Number(id) >= 0 && !s.writer.Current(c) { // damaged, of another leader, or of a backup
			stored, err := s.writer.Repair(ctx, id)
			switch {
			case err == nil:
				c = stored
			case !errors.Is(err, storage.ErrNotFound) && ctx.Err() == nil: // a deleted one is removed by its runner
				s.cfg.Logger.Error("could not restore the record of a campaign", "campaign", id, "reason", err)
			}
		}
		if c != nil {
			s.all.deliver(c)
		}
	}
	return nil
}

// supervise runs one campaign until it has ended. After an error, such as an outage of the store, it tries again.
func (s *Service) supervise(ctx context.Context, r *runner) {
	defer func() {
		if ctx.Err() == nil && r.rec != nil && r.status.last.Phase.Ended() {
			s.gauges.end(r.status.last, s.cfg.Now())
		} else {
			s.gauges.remove(r.id)
		}
	}()
	for c := s.all.next(r); c != nil; c = s.all.next(r) {
		s.runOnce(ctx, r, c)
		if ctx.Err() != nil {
			s.all.remove(r)
			return
		}
	}
}

// runOnce runs a campaign until it has ended, was deleted, or failed. After a failure it waits for Config.Restart.
func (s *Service) runOnce(ctx context.Context, r *runner, c *record.Campaign) {
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

package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ddiff/gpuworker"
	"ddiff/internal/gpuworker/enginecache"
	"ddiff/internal/lifecycle"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/restore/job"
	"ddiff/internal/retry"
	"ddiff/restore/item"
	"ddiff/storage"
)

// lease leases items of one campaign, and records whether the campaign has work. It returns neither items nor an error
// when the campaign has no work or cannot be processed now, and an error when no campaign can be processed.
func (f *Fleet) lease(ctx context.Context, c *campaign, wait time.Duration) (gpuworker.Assignment, []*queue.Lease, error) {
	if ctx.Err() != nil || !f.usable(c) {
		return gpuworker.Assignment{}, nil, ctx.Err()
	}
	s := f.snapshotOf(c)
	leases, err := f.request(ctx, c, s, wait)
	switch {
	case errors.Is(err, queue.ErrClosed):
		return gpuworker.Assignment{}, nil, err
	case errors.Is(err, queue.ErrNotReady), errors.Is(err, queue.ErrUnavailable):
		f.postpone(c, notReadyPause, nil)
		return gpuworker.Assignment{}, nil, nil
	case err != nil:
		f.postpone(c, errorPause, err)
		return gpuworker.Assignment{}, nil, nil
	}
	if len(leases) == 0 {
		f.recordEmpty(c, s)
		return gpuworker.Assignment{}, nil, nil
	}
	f.recordWork(c)
	// The campaign may have been paused during the request.
	if !f.usable(c) {
		f.release(ctx, f.snapshotOf(c), leases)
		return gpuworker.Assignment{}, nil, nil
	}
	extending := lifecycle.Go(context.WithoutCancel(ctx), func(ctx context.Context) error { return f.extend(ctx, c, leases) })
	a, err := f.assign(ctx, s)
	extending.Stop()
	a.Refuse = func(reason error) { f.refuse(c, reason) }
	if err == nil && slices.ContainsFunc(leases, func(l *queue.Lease) bool { return l.Class() != record.ClassPreflight }) {
		err = a.EngineError // the phase has changed since the snapshot
	}
	if err != nil {
		f.release(ctx, s, leases)
		f.postpone(c, errorPause, err)
		return gpuworker.Assignment{}, nil, nil
	}
	return a, leases, nil
}

// snapshot is a consistent copy of a campaign's fields.
type snapshot struct {
	record.Campaign
	store    storage.Store
	lifetime context.Context
	wakes    int // see emptiness
	leaseOne bool
}

func (f *Fleet) snapshotOf(c *campaign) snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return snapshot{c.record, c.store, c.lifetime, c.empty.wakes, c.leaseOne}
}

// answers reports whether an error of the prior or of an operator is the answer to the campaign's preflight.
func (s snapshot) answers(err error) bool {
	return (errors.Is(err, enginecache.ErrPriorFile) || errors.Is(err, enginecache.ErrOperatorFile)) && s.Phase == record.PhasePreflight
}

// request requests leases from a campaign's queue. If it may wait, it waits for one item and then leases the other
// available items.
func (f *Fleet) request(ctx context.Context, c *campaign, s snapshot, wait time.Duration) ([]*queue.Lease, error) {
	q, err := f.attach(ctx, c, s)
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx) // a lease request cannot be interrupted
	n := f.leaseSize(s)
	if wait == 0 || n == 1 {
		return q.Lease(ctx, n, wait)
	}
	leases, err := q.Lease(ctx, 1, wait)
	if err != nil || len(leases) == 0 {
		return leases, err
	}
	more, err := q.Lease(ctx, n-1, 0)
	if err != nil {
		f.cfg.Logger.Debug("could not lease more items", "campaign", s.ID, "reason", err)
	}
	return append(leases, more...), nil
}

// attach returns the campaign's queue, which it opens once.
func (f *Fleet) attach(ctx context.Context, c *campaign, s snapshot) (*queue.Queue, error) {
	c.attaching.Lock()
	defer c.attaching.Unlock()
	if c.queue != nil {
		return c.queue, nil
	}
	q, err := f.cfg.Attach(ctx, s.ID)
	if err != nil {
		return nil, fmt.Errorf("open the queue of campaign %s: %w", s.ID, err)
	}
	c.queue = q
	return q, nil
}

// batch returns the largest number of items to solve together; 0 leaves it to the Tuner.
func (f *Fleet) batch(s snapshot) int {
	switch {
	case f.cfg.Batch > 0:
		return f.cfg.Batch
	case s.Spec.Batch > 0:
		return s.Spec.Batch
	case f.cfg.Tuner == nil:
		return gpuworker.DefaultBatch
	}
	return 0
}

// leaseSize returns the number of items to lease.
func (f *Fleet) leaseSize(s snapshot) int {
	if s.leaseOne {
		return 1
	}
	if n := f.batch(s); n > 0 {
		return n
	}
	return f.cfg.Tuner.LeaseSize(s.ID)
}

// assign creates the assignment of a campaign's items.
func (f *Fleet) assign(ctx context.Context, s snapshot) (gpuworker.Assignment, error) {
	a := gpuworker.Assignment{
		Campaign: s.ID, Owner: s.Owner, Store: s.store, Sources: f.cfg.Sources, Lifetime: s.lifetime, Batch: f.batch(s),
		Deleted: func(ctx context.Context) (bool, error) {
			_, err := f.cfg.Store.Stat(ctx, s.Tombstone())
			if errors.Is(err, storage.ErrNotFound) {
				return false, nil
			}
			return err == nil, err
		},
	}
	if f.cfg.Engines == nil {
		return a, nil
	}
	var err error
	if len(s.Operators) > 0 {
		a.Operators, err = f.cfg.Engines.Operators(ctx, s.Operators)
	}
	if err == nil {
		a.Engine, a.Done, err = f.cfg.Engines.Acquire(ctx, s.Prior)
	}
	if s.answers(err) {
		a.EngineError, err = err, nil
	}
	return a, err
}

// extend extends leases until ctx ends: the worker does it only for items that have their assignment, and a prior may be fetched and opened
// more slowly than a lease expires.
func (f *Fleet) extend(ctx context.Context, c *campaign, leases []*queue.Lease) error {
	q, err := f.attach(ctx, c, f.snapshotOf(c))
	for err == nil && retry.Sleep(ctx, q.Config().AckWait/3) == nil {
		if err := queue.Extend(ctx, leases...); err != nil && ctx.Err() == nil {
			f.cfg.Logger.Warn("could not extend the leases", "campaign", q.Config().Campaign, "reason", err)
		}
	}
	return err
}

// refuse excludes a campaign until the end of this worker, and logs the first reason.
func (f *Fleet) refuse(c *campaign, reason error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.refused == "" {
		c.refused = reason.Error()
		f.cfg.Logger.Error("cannot process campaign", "campaign", c.record.ID, "reason", reason)
	}
}

// maxRefused limits the size of a heartbeat.
const maxRefused = 100

// Refused returns up to 100 open campaigns that this worker cannot process, with the reasons.
func (f *Fleet) Refused() map[string]string {
	open, _ := f.open()
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]string{}
	for _, c := range open.all {
		if c.refused != "" && len(out) < maxRefused {
			out[c.record.ID] = c.refused
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.newer)) {
		if len(out) == maxRefused {
			break
		}
		out[strings.TrimPrefix(key, record.KeyCampaignPrefix)] = job.Unsupported(fmt.Errorf(
			"%w: the record is newer than schema %d", item.ErrNewer, record.Schema)).Error()
	}
	return out
}

// release returns items to the queue. It drops the items of a cancelled campaign.
func (f *Fleet) release(ctx context.Context, s snapshot, leases []*queue.Lease) {
	ctx = context.WithoutCancel(ctx)
	drop := s.Wanted == record.WantCancel || s.Wanted == record.WantCancelNow
	for _, l := range leases {
		end := l.Release
		if drop {
			end = l.Ack
		}
		if err := end(ctx); err != nil {
			f.cfg.Logger.Debug("could not release item", "campaign", s.ID, "reason", err)
		}
	}
}

// lacks returns the reason why this worker leases no items of a campaign: it does not compute in the campaign's precision,
// or not all its methods. It is nil otherwise.
func (f *Fleet) lacks(c *record.Campaign) error {
	need, whose := c.Spec.Precision, "the campaign's"
	if need == "" {
		need, whose = f.cfg.Default, "its default"
	}
	if need == "" {
		return nil
	}
	if f.cfg.Precisions != nil && !slices.Contains(f.cfg.Precisions, need) {
		return job.MissingPrecision(need, f.cfg.Precisions)
	}
	if name, reason := f.cfg.Methods.Undivided(c.Spec.Methods); name != "" && f.cfg.Whole != nil && !slices.Contains(f.cfg.Whole, need) {
		return fmt.Errorf("%w: its method %s %s, which this worker cannot do in %s precision %s", job.ErrUnsupported, name, reason, whose, need)
	}
	return nil
}

package gpuworker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// Next implements the dispatcher of a [Worker]. It first polls the campaigns that wait for their preflight, see
// leasePreflight, then the campaigns in their order. If none has work, it waits for work in one campaign of the highest
// priority, a different one each time.
func (f *Fleet) Next(ctx context.Context, wait time.Duration) (Assignment, []*queue.Lease, error) {
	begin := f.cfg.Now()
	open, changed := f.open()
	if a, leases, err := f.leasePreflight(ctx, open); err != nil || len(leases) > 0 {
		return a, leases, err
	}
	var empty []*campaign // usable campaigns of the highest priority
	var highest manifest.Priority
	for _, priority := range manifest.Priorities() {
		working := open[priority]
		for _, c := range f.order(priority, working) {
			a, leases, err := f.lease(ctx, c, pollWait)
			switch {
			case err != nil:
				return Assignment{}, nil, err
			case len(leases) > 0:
				f.charge(priority, c, len(leases), working)
				return a, leases, nil
			}
			working = slices.DeleteFunc(slices.Clone(working), func(other *campaign) bool { return other == c })
			f.markIdle(priority, c)
			if (len(empty) == 0 || priority == highest) && f.usable(c) {
				empty, highest = append(empty, c), priority
			}
		}
	}
	if len(empty) == 0 {
		f.waitForChange(ctx, changed, wait-f.cfg.Now().Sub(begin))
		return Assignment{}, nil, ctx.Err()
	}
	next := empty[f.nextPoll()%len(empty)]
	a, leases, err := f.lease(ctx, next, wait)
	if len(leases) > 0 {
		f.charge(highest, next, len(leases), []*campaign{next})
	}
	return a, leases, err
}

// leasePreflight leases the preflight of one campaign, whatever its priority: otherwise a higher class with work would
// keep the campaign from starting. A campaign has one preflight. At most every second call leases one, and a campaign is
// polled at most once per notReadyPause.
func (f *Fleet) leasePreflight(ctx context.Context, open map[manifest.Priority][]*campaign) (Assignment, []*queue.Lease, error) {
	c := f.nextPreflight(open)
	if c == nil {
		return Assignment{}, nil, nil
	}
	a, leases, err := f.lease(ctx, c, pollWait)
	if len(leases) > 0 {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.skipPreflight = true
	}
	return a, leases, err
}

// nextPreflight returns the campaign whose preflight was polled longest ago, or nil if none is due.
func (f *Fleet) nextPreflight(open map[manifest.Priority][]*campaign) *campaign {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.skipPreflight {
		f.skipPreflight = false
		return nil
	}
	now := f.cfg.Now()
	var next *campaign
	for _, priority := range manifest.Priorities() {
		for _, c := range open[priority] {
			due := c.record.Phase == manifest.PhasePreflight && now.Sub(c.preflightPolled) >= notReadyPause
			if due && (next == nil || c.preflightPolled.Before(next.preflightPolled)) {
				next = c
			}
		}
	}
	if next != nil {
		next.preflightPolled = now
	}
	return next
}

// open returns the runnable campaigns by priority, oldest first, and a channel that is closed at the next change.
func (f *Fleet) open() (map[manifest.Priority][]*campaign, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[manifest.Priority][]*campaign{}
	for _, c := range f.campaigns {
		if c.record.Open() {
			out[c.record.Priority] = append(out[c.record.Priority], c)
		}
	}
	for _, all := range out {
		slices.SortFunc(all, func(a, b *campaign) int {
			return cmp.Or(a.record.Submitted.Compare(b.record.Submitted), cmp.Compare(a.record.ID, b.record.ID))
		})
	}
	return out, f.changed
}

func contenders(all []*campaign) []contender {
	out := make([]contender, len(all))
	for i, c := range all {
		out[i] = contender{c.record.ID, c.record.Weight}
	}
	return out
}

func (f *Fleet) rotation(p manifest.Priority) *rotation {
	if f.rotations[p] == nil {
		f.rotations[p] = &rotation{}
	}
	return f.rotations[p]
}

// order sorts the campaigns of a priority, next campaign first.
func (f *Fleet) order(p manifest.Priority, all []*campaign) []*campaign {
	f.mu.Lock()
	defer f.mu.Unlock()
	byID := map[string]*campaign{}
	for _, c := range all {
		byID[c.record.ID] = c
	}
	out := make([]*campaign, 0, len(all))
	for _, c := range f.rotation(p).order(contenders(all)) {
		out = append(out, byID[c.id])
	}
	return out
}

func (f *Fleet) charge(p manifest.Priority, c *campaign, items int, working []*campaign) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rotation(p).charge(c.record.ID, items, contenders(working))
}

func (f *Fleet) markIdle(p manifest.Priority, c *campaign) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rotation(p).idle(c.record.ID)
}

func (f *Fleet) nextPoll() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.polls++
	return f.polls
}

// waitForChange waits for a change of the board, for at most d.
func (f *Fleet) waitForChange(ctx context.Context, changed <-chan struct{}, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, max(d, pollWait))
	defer cancel()
	select {
	case <-ctx.Done():
	case <-changed:
	}
}

// usable reports whether items of a campaign may be leased now.
func (f *Fleet) usable(c *campaign) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return c.lifetime.Err() == nil && c.record.Open() && !f.cfg.Now().Before(c.retryAt)
}

// postpone skips a campaign for a while, and logs a new reason.
func (f *Fleet) postpone(c *campaign, d time.Duration, reason error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.retryAt = f.cfg.Now().Add(d)
	if reason == nil || c.lastError == reason.Error() {
		return
	}
	c.lastError = reason.Error()
	f.cfg.Logger.Error("cannot process campaign", "campaign", c.record.ID, "reason", reason)
}

// lease leases items of one campaign. It returns neither items nor an error when the campaign has no work or cannot be
// processed now, and an error when no campaign can be processed.
func (f *Fleet) lease(ctx context.Context, c *campaign, wait time.Duration) (Assignment, []*queue.Lease, error) {
	if ctx.Err() != nil || !f.usable(c) {
		return Assignment{}, nil, ctx.Err()
	}
	s := f.snapshotOf(c)
	ready, unusable := f.fetch(c, s)
	if !ready {
		return Assignment{}, nil, nil
	}
	leases, err := f.request(ctx, c, s, wait)
	switch {
	case errors.Is(err, queue.ErrClosed):
		return Assignment{}, nil, err
	case errors.Is(err, queue.ErrNotReady), errors.Is(err, queue.ErrUnavailable):
		f.postpone(c, notReadyPause, nil)
		return Assignment{}, nil, nil
	case err != nil:
		f.postpone(c, errorPause, err)
		return Assignment{}, nil, nil
	}
	if len(leases) == 0 {
		return Assignment{}, nil, nil
	}
	// The campaign may have been paused during the request.
	if !f.usable(c) {
		f.release(ctx, f.snapshotOf(c), leases)
		return Assignment{}, nil, nil
	}
	a, err := f.assign(ctx, s, unusable)
	if err != nil {
		f.release(ctx, s, leases)
		f.postpone(c, errorPause, err)
		return Assignment{}, nil, nil
	}
	return a, leases, nil
}

// snapshot is a consistent copy of a campaign's fields.
type snapshot struct {
	manifest.Campaign
	store    storage.Store
	lifetime context.Context
}

func (f *Fleet) snapshotOf(c *campaign) snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return snapshot{c.record, c.store, c.lifetime}
}

// fetch reports whether the campaign's prior is on this machine. unusable is the error of a prior whose preflight is
// leased all the same, to report the error.
func (f *Fleet) fetch(c *campaign, s snapshot) (ready bool, unusable error) {
	if f.cfg.Engines == nil {
		return true, nil
	}
	ready, err := f.cfg.Engines.Fetch(s.Prior)
	switch {
	case err == nil:
		return ready, nil
	case s.answers(err):
		return true, err
	}
	f.postpone(c, errorPause, err)
	return false, nil
}

// answers reports whether an error of the prior is the answer to the campaign's preflight.
func (s snapshot) answers(err error) bool {
	return errors.Is(err, ErrPriorFile) && s.Phase == manifest.PhasePreflight
}

// request requests leases from a campaign's queue. If it may wait, it waits for one item and then leases the other
// available items.
func (f *Fleet) request(ctx context.Context, c *campaign, s snapshot, wait time.Duration) ([]*queue.Lease, error) {
	q, err := f.attach(ctx, c, s)
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx) // see leaseSlice
	n := f.leaseSize(s)
	if wait <= pollWait || n == 1 {
		return q.Lease(ctx, n, wait)
	}
	leases, err := q.Lease(ctx, 1, min(wait, fleetSlice))
	if err != nil || len(leases) == 0 {
		return leases, err
	}
	more, err := q.Lease(ctx, n-1, pollWait)
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
		return DefaultBatch
	}
	return 0
}

// leaseSize returns the number of items to lease.
func (f *Fleet) leaseSize(s snapshot) int {
	if n := f.batch(s); n > 0 {
		return n
	}
	return f.cfg.Tuner.LeaseSize(s.ID)
}

// assign creates the assignment of a campaign's items.
func (f *Fleet) assign(ctx context.Context, s snapshot, unusable error) (Assignment, error) {
	a := Assignment{
		Campaign: s.ID, Store: s.store, Sources: f.cfg.Sources, EngineError: unusable, Lifetime: s.lifetime, Batch: f.batch(s),
	}
	var err error
	if f.cfg.Engines != nil && unusable == nil {
		if a.Engine, a.Done, err = f.cfg.Engines.Acquire(ctx, s.Prior); s.answers(err) {
			a.EngineError, err = err, nil
		}
	}
	return a, err
}

// release returns items to the queue. It drops the items of a cancelled campaign.
func (f *Fleet) release(ctx context.Context, s snapshot, leases []*queue.Lease) {
	ctx = context.WithoutCancel(ctx)
	drop := s.Wanted == manifest.WantCancel || s.Wanted == manifest.WantCancelNow
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

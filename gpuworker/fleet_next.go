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

// Next implements the dispatcher of a [Worker]. It looks into the campaigns in their order,
// and if none has work waits for some in one of the highest class, another one each time.
func (f *Fleet) Next(ctx context.Context, wait time.Duration) (Assignment, []*queue.Lease, error) {
	begin := f.cfg.Now()
	open, changed := f.open()
	var empty []*campaign // of the highest class that can be worked on
	var highest manifest.Priority
	for _, class := range manifest.Priorities() {
		left := open[class]
		for _, c := range f.order(class, left) {
			a, leases, err := f.pull(ctx, c, glance)
			switch {
			case err != nil:
				return Assignment{}, nil, err
			case len(leases) > 0:
				f.charge(class, c, len(leases), left)
				return a, leases, nil
			}
			left = slices.DeleteFunc(slices.Clone(left), func(other *campaign) bool { return other == c })
			f.rest(class, c)
			if (len(empty) == 0 || class == highest) && f.usable(c) {
				empty, highest = append(empty, c), class
			}
		}
	}
	if len(empty) == 0 {
		f.await(ctx, changed, wait-f.cfg.Now().Sub(begin))
		return Assignment{}, nil, ctx.Err()
	}
	next := empty[f.turn()%len(empty)]
	a, leases, err := f.pull(ctx, next, wait)
	if len(leases) > 0 {
		f.charge(highest, next, len(leases), []*campaign{next})
	}
	return a, leases, err
}

// open are the campaigns that may be worked on, by class, the oldest first, and what is
// closed when that changes.
func (f *Fleet) open() (map[manifest.Priority][]*campaign, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[manifest.Priority][]*campaign{}
	for _, c := range f.campaigns {
		if c.record.Open() {
			out[c.record.Priority] = append(out[c.record.Priority], c)
		}
	}
	for _, class := range out {
		slices.SortFunc(class, func(a, b *campaign) int {
			return cmp.Or(a.record.Submitted.Compare(b.record.Submitted), cmp.Compare(a.record.ID, b.record.ID))
		})
	}
	return out, f.changed
}

func turns(all []*campaign) []turn {
	out := make([]turn, len(all))
	for i, c := range all {
		out[i] = turn{c.record.ID, c.record.Weight}
	}
	return out
}

func (f *Fleet) rotation(class manifest.Priority) *rotation {
	if f.rotations[class] == nil {
		f.rotations[class] = &rotation{}
	}
	return f.rotations[class]
}

// order sorts the campaigns of a class by whose turn it is.
func (f *Fleet) order(class manifest.Priority, all []*campaign) []*campaign {
	f.mu.Lock()
	defer f.mu.Unlock()
	byID := map[string]*campaign{}
	for _, c := range all {
		byID[c.record.ID] = c
	}
	out := make([]*campaign, 0, len(all))
	for _, t := range f.rotation(class).order(turns(all)) {
		out = append(out, byID[t.id])
	}
	return out
}

func (f *Fleet) charge(class manifest.Priority, c *campaign, items int, working []*campaign) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rotation(class).charge(c.record.ID, items, turns(working))
}

func (f *Fleet) rest(class manifest.Priority, c *campaign) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rotation(class).idle(c.record.ID)
}

func (f *Fleet) turn() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.polls++
	return f.polls
}

// await waits for a change of the board.
func (f *Fleet) await(ctx context.Context, changed <-chan struct{}, d time.Duration) {
	t := time.NewTimer(max(d, glance))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-changed:
	case <-t.C:
	}
}

// usable tells whether a campaign can be pulled from now.
func (f *Fleet) usable(c *campaign) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !c.gone && c.record.Open() && !f.cfg.Now().Before(c.again)
}

// postpone leaves a campaign alone for a while, and says why, once.
func (f *Fleet) postpone(c *campaign, d time.Duration, reason error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.again = f.cfg.Now().Add(d)
	if reason == nil || c.said == reason.Error() {
		return
	}
	c.said = reason.Error()
	f.cfg.Logger.Error("cannot work on a campaign now", "campaign", c.record.ID, "reason", reason)
}

// pull leases items of one campaign. No items and no error mean that it has none, or cannot be
// worked on now; an error that nothing can be worked on.
func (f *Fleet) pull(ctx context.Context, c *campaign, wait time.Duration) (Assignment, []*queue.Lease, error) {
	if ctx.Err() != nil || !f.usable(c) {
		return Assignment{}, nil, ctx.Err()
	}
	r := f.recordOf(c)
	ready, broken := f.fetched(c, r)
	if !ready {
		return Assignment{}, nil, nil
	}
	leases, err := f.lease(ctx, c, r, wait)
	switch {
	case errors.Is(err, queue.ErrClosed):
		return Assignment{}, nil, err
	case errors.Is(err, queue.ErrNotReady), errors.Is(err, queue.ErrUnavailable):
		f.postpone(c, notReady, nil)
		return Assignment{}, nil, nil
	case err != nil:
		f.postpone(c, troubled, err)
		return Assignment{}, nil, nil
	}
	if len(leases) == 0 {
		return Assignment{}, nil, nil
	}
	// The campaign may have been paused while the call waited.
	if !f.usable(c) {
		f.release(ctx, f.recordOf(c), leases)
		return Assignment{}, nil, nil
	}
	a, err := f.assign(ctx, r, broken)
	if err != nil {
		f.release(ctx, r, leases)
		f.postpone(c, troubled, err)
		return Assignment{}, nil, nil
	}
	return a, leases, nil
}

// assignable is what a pull needs of a campaign's record.
type assignable struct {
	manifest.Campaign
	store     storage.Store
	cancelled <-chan struct{}
}

func (f *Fleet) recordOf(c *campaign) assignable {
	f.mu.Lock()
	defer f.mu.Unlock()
	return assignable{c.record, c.store, c.cancelled}
}

// fetched tells whether the campaign's prior is on this machine. One that can never be used
// is broken; its preflight is handed out all the same, to say so.
func (f *Fleet) fetched(c *campaign, r assignable) (ready bool, broken error) {
	if f.cfg.Engines == nil {
		return true, nil
	}
	ready, err := f.cfg.Engines.Fetch(r.Prior)
	switch {
	case err == nil:
		return ready, nil
	case r.tells(err):
		return true, err
	}
	f.postpone(c, troubled, err)
	return false, nil
}

// tells says whether an error of opening the prior is the answer of a preflight.
func (r assignable) tells(err error) bool {
	return errors.Is(err, ErrPriorFile) && r.Phase == manifest.PhasePreflight
}

// lease pulls from a campaign's queue. When it is willing to wait it takes the first item that
// comes, and then what else is there.
func (f *Fleet) lease(ctx context.Context, c *campaign, r assignable, wait time.Duration) ([]*queue.Lease, error) {
	q, err := f.attached(ctx, c, r)
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx) // see pullSlice
	n := f.size(r)
	if wait <= glance || n == 1 {
		return q.Lease(ctx, n, wait)
	}
	leases, err := q.Lease(ctx, 1, min(wait, fleetSlice))
	if err != nil || len(leases) == 0 {
		return leases, err
	}
	more, err := q.Lease(ctx, n-1, glance)
	if err != nil {
		f.cfg.Logger.Debug("could not lease more items", "campaign", r.ID, "reason", err)
	}
	return append(leases, more...), nil
}

// attached is the campaign's queue.
func (f *Fleet) attached(ctx context.Context, c *campaign, r assignable) (*queue.Queue, error) {
	c.attaching.Lock()
	defer c.attaching.Unlock()
	if c.queue != nil {
		return c.queue, nil
	}
	q, err := f.cfg.Attach(ctx, r.ID)
	if err != nil {
		return nil, fmt.Errorf("open the queue of campaign %s: %w", r.ID, err)
	}
	c.queue = q
	return q, nil
}

// size is the number of items to lease.
func (f *Fleet) size(r assignable) int {
	switch {
	case f.cfg.Batch > 0:
		return f.cfg.Batch
	case r.Spec.Batch > 0:
		return r.Spec.Batch
	case f.cfg.Tuner != nil:
		return f.cfg.Tuner.Pull(r.ID)
	}
	return DefaultBatch
}

// assign is what a worker needs to know about the campaign's items.
func (f *Fleet) assign(ctx context.Context, r assignable, broken error) (Assignment, error) {
	a := Assignment{
		Campaign: r.ID, Store: r.store, Sources: f.cfg.Sources, Broken: broken, Cancelled: r.cancelled,
		Batch: f.cfg.Batch,
	}
	switch {
	case a.Batch > 0:
	case r.Spec.Batch > 0:
		a.Batch = r.Spec.Batch
	case f.cfg.Tuner == nil:
		a.Batch = DefaultBatch
	}
	var err error
	if f.cfg.Engines != nil && broken == nil {
		if a.Engine, a.Done, err = f.cfg.Engines.Acquire(ctx, r.Prior); r.tells(err) {
			a.Broken, err = err, nil
		}
	}
	return a, err
}

// release gives items back that are not to be worked on. Those of a campaign that is cancelled
// are dropped.
func (f *Fleet) release(ctx context.Context, r assignable, leases []*queue.Lease) {
	ctx = context.WithoutCancel(ctx)
	dropped := r.Wanted == manifest.WantCancel || r.Wanted == manifest.WantCancelNow
	for _, l := range leases {
		end := l.Release
		if dropped {
			end = l.Ack
		}
		if err := end(ctx); err != nil {
			f.cfg.Logger.Debug("could not give an item back", "campaign", r.ID, "reason", err)
		}
	}
}

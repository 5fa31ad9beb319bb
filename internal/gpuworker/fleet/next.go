package fleet

import (
	"cmp"
	"context"
	"slices"
	"time"

	"ddiff/gpuworker"
	"ddiff/internal/queue"
	"ddiff/internal/record"
)

// Next implements the dispatcher of a worker. It requests leases of the campaigns that may have work, in their order:
// first those that wait for their preflight, then by priority and rotation. If none has work, it waits for work in one
// empty campaign, a different one each time, for at most wait, see emptiness.
func (f *Fleet) Next(ctx context.Context, wait time.Duration) (gpuworker.Assignment, []*queue.Lease, error) {
	open, changed := f.open()
	if a, leases, err := f.leasePreflight(ctx, open.preflight); err != nil || len(leases) > 0 {
		return a, leases, err
	}
	for _, class := range open.classes {
		if a, leases, err := f.leaseClass(ctx, class); err != nil || len(leases) > 0 {
			return a, leases, err
		}
	}
	if len(open.all) == 0 {
		f.waitForChange(ctx, changed, wait)
		return gpuworker.Assignment{}, nil, ctx.Err()
	}
	wait = min(wait, f.waitSlice())
	next := f.nextWait(open.all)
	if next == nil {
		f.waitForChange(ctx, changed, wait)
		return gpuworker.Assignment{}, nil, ctx.Err()
	}
	a, leases, err := f.lease(ctx, next, wait)
	f.charge(next, len(leases), []*campaign{next})
	return a, leases, err
}

// leaseClass leases items of one campaign of a class. Empty campaigns whose check is due come first, and then the
// campaigns that may have work, in the order of the rotation.
func (f *Fleet) leaseClass(ctx context.Context, class []*campaign) (gpuworker.Assignment, []*queue.Lease, error) {
	working := f.working(class)
	if c, a, leases, err := f.leaseFirstOf(ctx, f.due(class)); c != nil {
		f.charge(c, len(leases), append(working, c))
		return a, leases, err
	}
	for _, c := range f.order(working) {
		a, leases, err := f.lease(ctx, c, 0)
		if err != nil || len(leases) > 0 {
			f.charge(c, len(leases), working)
			return a, leases, err
		}
		working = slices.DeleteFunc(slices.Clone(working), func(other *campaign) bool { return other == c })
	}
	return gpuworker.Assignment{}, nil, nil
}

// leasePreflight leases the preflight of one campaign, whatever its priority: otherwise a higher class with work would
// keep the campaign from starting. A campaign has one preflight, and at most every second call leases one.
func (f *Fleet) leasePreflight(ctx context.Context, waiting []*campaign) (gpuworker.Assignment, []*queue.Lease, error) {
	if f.setSkipPreflight(false) {
		return gpuworker.Assignment{}, nil, nil
	}
	_, a, leases, err := f.leaseFirstOf(ctx, append(f.due(waiting), f.working(waiting)...))
	if len(leases) > 0 {
		f.setSkipPreflight(true)
	}
	return a, leases, err
}

// leaseFirstOf leases items of the first campaign that has some, or fails. It returns no campaign if none does.
func (f *Fleet) leaseFirstOf(ctx context.Context, all []*campaign) (*campaign, gpuworker.Assignment, []*queue.Lease, error) {
	for _, c := range all {
		if a, leases, err := f.lease(ctx, c, 0); err != nil || len(leases) > 0 {
			return c, a, leases, err
		}
	}
	return nil, gpuworker.Assignment{}, nil, nil
}

// setSkipPreflight sets whether the next call of Next leases no preflight, and returns the previous value.
func (f *Fleet) setSkipPreflight(skip bool) (previous bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	previous, f.skipPreflight = f.skipPreflight, skip
	return previous
}

// openCampaigns are the runnable campaigns of the worker's pool, the oldest first.
type openCampaigns struct {
	all       []*campaign
	classes   [][]*campaign // by priority, the highest first
	preflight []*campaign   // those that wait for their preflight
}

// open returns the runnable campaigns, and a channel that is closed at the next change.
func (f *Fleet) open() (*openCampaigns, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.opened == nil {
		f.opened = f.sortOpen()
	}
	return f.opened, f.changed
}

// sortOpen sorts the runnable campaigns. The caller holds f.mu.
func (f *Fleet) sortOpen() *openCampaigns {
	out := &openCampaigns{}
	for _, c := range f.campaigns {
		if c.record.Open() && c.record.MayUse(f.cfg.Pool) {
			out.all = append(out.all, c)
		}
	}
	slices.SortFunc(out.all, func(a, b *campaign) int {
		return cmp.Or(a.record.Submitted.Compare(b.record.Submitted), cmp.Compare(a.record.ID, b.record.ID))
	})
	priorities := record.Priorities()
	out.classes = make([][]*campaign, len(priorities))
	for _, c := range out.all {
		class := slices.Index(priorities, c.record.Priority) // a valid record has one of them
		out.classes[class] = append(out.classes[class], c)
		if c.record.Phase == record.PhasePreflight {
			out.preflight = append(out.preflight, c)
		}
	}
	return out
}

// working returns the campaigns that may have work.
func (f *Fleet) working(all []*campaign) []*campaign {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.cfg.Now()
	var out []*campaign
	for _, c := range all {
		if c.empty.since.IsZero() && f.usableAt(c, now) {
			out = append(out, c)
		}
	}
	return out
}

// order sorts campaigns of one priority, next campaign first.
func (f *Fleet) order(all []*campaign) []*campaign {
	if len(all) == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.rotation(all[0].record.Priority).order(all)
	if i := slices.IndexFunc(out, func(c *campaign) bool { return c.first }); i >= 0 {
		next := out[i]
		next.first = false
		out = slices.Insert(slices.Delete(out, i, i+1), 0, next)
	}
	return out
}

// charge records n leased items of a campaign. working are the campaigns of its priority that may have work, including
// this campaign.
func (f *Fleet) charge(c *campaign, n int, working []*campaign) {
	if n == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rotation(c.record.Priority).charge(c.record.ID, n, working)
}

// rotation returns the rotation of a priority. The caller holds f.mu.
func (f *Fleet) rotation(p record.Priority) *rotation {
	if f.rotations[p] == nil {
		f.rotations[p] = &rotation{}
	}
	return f.rotations[p]
}

// waitForChange waits for a change of the board, for at most d.
func (f *Fleet) waitForChange(ctx context.Context, changed <-chan struct{}, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
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
	return f.usableAt(c, f.cfg.Now())
}

// usableAt is usable for a caller that holds f.mu.
func (f *Fleet) usableAt(c *campaign, now time.Time) bool {
	return c.lifetime.Err() == nil && c.refused == "" && c.record.Open() && !now.Before(c.retryAt)
}

// postpone skips a campaign for a while, and logs a new reason.
func (f *Fleet) postpone(c *campaign, d time.Duration, reason error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.skip(c, d, reason)
}

// skip is postpone for a caller that holds f.mu.
func (f *Fleet) skip(c *campaign, d time.Duration, reason error) {
	c.retryAt = f.cfg.Now().Add(d)
	if reason == nil || c.lastError == reason.Error() {
		return
	}
	c.lastError = reason.Error()
	f.cfg.Logger.Error("cannot process campaign", "campaign", c.record.ID, "reason", reason)
}

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/retry"
)

// A Fleet remembers which campaigns had no work, and does not request leases of them at every call: the cost of a lease
// must not grow with the number of open campaigns. An empty campaign gets work again in three ways:
//
//   - The coordinator publishes items: it then changes the campaign's record, which ends the memory at once.
//   - A worker retries an item with a delay, releases an item, or its lease expires. A check of the campaign finds the
//     item. The pause between two checks is the time since the campaign was found empty, from firstCheck to lastCheck.
//   - An idle worker waits in one empty campaign after the other, the one with the earliest check first.
//
// All workers together make about clusterChecks checks and clusterWaits lease requests with a wait per second, however
// many there are. With many workers and empty campaigns one worker checks a campaign seldom, but some worker checks it
// every N / clusterChecks seconds.
const (
	firstCheck = 10 * time.Millisecond
	lastCheck  = 2 * time.Second
	// workerChecks is the largest number of checks of one Fleet per second, checkBurst that at a time.
	workerChecks = 50
	checkBurst   = 8
	// clusterChecks and clusterWaits are the numbers of requests to empty campaigns per second by all workers.
	clusterChecks = 2000
	clusterWaits  = 5000
	// shortestWait and longestWait limit one lease request with a wait. The wait cannot be interrupted.
	shortestWait = 100 * time.Millisecond
	longestWait  = time.Second
)

// emptiness is the memory of one campaign.
type emptiness struct {
	since time.Time // when the campaign was found empty; zero: it may have work
	check time.Time // next check
	wakes int       // number of changes of the record
}

// wake ends the memory that a campaign is empty.
func (e *emptiness) wake() {
	e.since, e.check = time.Time{}, time.Time{}
	e.wakes++
}

// recordEmpty records that a campaign has no work, unless it was woken after the snapshot.
func (f *Fleet) recordEmpty(c *campaign, s snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.cfg.Now()
	f.rotation(s.Priority).idle(s.ID)
	e := &c.empty
	if e.wakes != s.wakes {
		return
	}
	if e.since.IsZero() {
		e.since = now
	}
	pause := min(max(now.Sub(e.since), firstCheck), lastCheck)
	e.check = now.Add(time.Duration((0.75 + rand.Float64()/2) * float64(pause))) // workers do not check together
}

// checkRate is the number of checks per second that this Fleet may make. The caller holds f.mu.
func (f *Fleet) checkRate() float64 {
	return min(workerChecks, float64(clusterChecks)/float64(max(f.workers, 1)))
}

// waitSlice is the duration of one lease request with a wait.
func (f *Fleet) waitSlice() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return min(max(time.Duration(f.workers)*time.Second/clusterWaits, shortestWait), longestWait)
}

// recordWork records that a campaign had work.
func (f *Fleet) recordWork(c *campaign) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.empty.since, c.empty.check = time.Time{}, time.Time{}
}

// due returns the empty campaigns among all whose check is due, as many as this Fleet may check now.
func (f *Fleet) due(all []*campaign) []*campaign {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.cfg.Now()
	var out []*campaign
	for _, c := range all {
		if !c.empty.since.IsZero() && !now.Before(c.empty.check) && f.usableAt(c, now) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *campaign) int { return a.empty.check.Compare(b.empty.check) })
	f.checks.SetLimitAt(now, rate.Limit(f.checkRate()))
	for i, c := range out {
		if !f.checks.AllowN(now, 1) {
			return out[:i]
		}
		c.empty.check = now.Add(lastCheck) // other workers of this Fleet do not check it too
	}
	return out
}

// nextWait returns the empty campaign to wait in: the one with the earliest check. It is nil when no campaign is usable.
func (f *Fleet) nextWait(all []*campaign) *campaign {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.cfg.Now()
	var next *campaign
	for _, c := range all {
		if f.usableAt(c, now) && (next == nil || c.empty.check.Before(next.empty.check)) {
			next = c
		}
	}
	if next != nil {
		next.empty.check = now.Add(lastCheck)
	}
	return next
}

const (
	// The number of workers is read every countPause, or every firstCount while it is unknown.
	countPause = 30 * time.Second
	firstCount = 5 * time.Second
)

// countWorkers reads the number of live workers from the status of campaigns until ctx ends.
func (f *Fleet) countWorkers(ctx context.Context) error {
	for ctx.Err() == nil {
		open, changed := f.open()
		if len(open.all) == 0 {
			f.waitForChange(ctx, changed, countPause)
			continue
		}
		pause := firstCount
		s, err := f.readStatus(ctx, f.snapshotOf(open.all[rand.IntN(len(open.all))]).ID)
		if err == nil && s.Workers > 0 {
			f.mu.Lock()
			f.workers = s.Workers
			f.mu.Unlock()
			pause = countPause
		} else if err != nil && !errors.Is(err, queue.ErrNoRecord) && ctx.Err() == nil {
			f.cfg.Logger.Debug("could not read the number of workers", "reason", err)
		}
		_ = retry.Sleep(ctx, time.Duration((0.5+rand.Float64())*float64(pause))) // the loop checks ctx
	}
	return ctx.Err()
}

// Others returns the number of other live workers of the cluster. The error says that it is not known yet.
func (f *Fleet) Others(context.Context) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.workers == 0 {
		return 0, errors.New("the number of workers is not known")
	}
	return f.workers - 1, nil
}

// Ended returns the number of workers that ended without a word, in the status of a campaign.
func (f *Fleet) Ended(ctx context.Context, campaign string) (int, error) {
	s, err := f.readStatus(ctx, campaign)
	return s.Ended, err
}

// readStatus returns the status of a campaign.
func (f *Fleet) readStatus(ctx context.Context, campaign string) (s record.Status, err error) {
	data, _, err := f.cfg.Board.Get(ctx, record.KeyStatusPrefix+campaign)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("read status: %w", err)
	}
	return s, nil
}

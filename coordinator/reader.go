package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/lifecycle"
	"ddiff/internal/retry"
)

// reader makes the windows of a dataset with a sharder, beside its runner.
type reader struct {
	sharder *shard.Sharder       // nil while the precision of the items is not chosen
	windows <-chan shardedWindow // the next window; nil while the sharder does not read
	service *lifecycle.Service   // fills windows
	waiting waiting              // also set by the sharder
	limit   int                  // number of open items above which one window is read per tick
	ticked  bool                 // since the last window
	tick    time.Duration
	now     func() time.Time
	log     *slog.Logger
}

// shardedWindow is a window from the sharder, or the error of the dataset.
type shardedWindow struct {
	window *shard.Window
	err    error
}

// start starts to make the windows from a position, unless it does already. With ahead it makes one window before it is
// needed; otherwise it ends after one window.
func (d *reader) start(ctx context.Context, next shard.Position, ahead bool) {
	if d.windows != nil {
		return
	}
	windows, sharder := make(chan shardedWindow), d.sharder
	d.windows = windows
	d.service = lifecycle.Go(ctx, func(ctx context.Context) error {
		defer close(windows)
		for w, err := range sharder.Windows(ctx, next) {
			d.waiting.clear()
			select {
			case windows <- shardedWindow{w, err}:
			case <-ctx.Done():
				return ctx.Err()
			}
			if !ahead {
				return nil
			}
		}
		return nil
	})
}

// stop stops the sharder and drops the window that it has read ahead. start makes that window again.
func (d *reader) stop() {
	if d.windows != nil {
		d.service.Stop()
		d.windows = nil
		d.waiting.clear()
	}
}

// may reports whether the next window may be read beside so many open items.
func (d *reader) may(open int) bool { return open <= d.limit || d.ticked }

// again makes a window again from the current dataset, without what was appended since; at is where the next window begins. start makes the window that
// was read ahead again.
func (d *reader) again(ctx context.Context, old *shard.Window, at shard.Position) (*shard.Window, error) {
	d.stop() // one goroutine at a time may use the sharder
	return d.sharder.Again(ctx, old, at)
}

// await waits before the next attempt at a dataset that cannot be read. It is the Wait of a sharder.
func (d *reader) await(ctx context.Context, cause error) error {
	delay, isNew := d.wait("dataset", cause)
	if isNew {
		d.log.Warn("waiting for the dataset", "reason", cause)
	}
	return retry.Sleep(ctx, delay)
}

// wait notes why the campaign cannot read an object, see waiting.set.
func (d *reader) wait(object string, cause error) (delay time.Duration, isNew bool) {
	return d.waiting.set(object, cause.Error(), d.now(), d.tick)
}

// maxSourceWait is the longest wait between two attempts at a source, in ticks.
const maxSourceWait = 60

// waiting is the reason why a campaign cannot read its dataset or its prior. It is safe for concurrent use.
type waiting struct {
	mu     sync.Mutex
	object string // "dataset", "prior" or "operator"
	cause  string
	since  time.Time
	delays *backoff.ExponentialBackOff
}

// reason is one line, or empty if the campaign reads or needs nothing.
func (w *waiting) reason() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cause == "" {
		return ""
	}
	return fmt.Sprintf("waiting for the %s since %s: %s", w.object, w.since.UTC().Format(time.RFC3339), w.cause)
}

// set records a cause. It returns the wait before the next attempt, and whether the cause is new.
func (w *waiting) set(object, cause string, now time.Time, tick time.Duration) (delay time.Duration, isNew bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cause == "" {
		w.since, w.delays = now, retry.NewBackOff(tick, maxSourceWait*tick)
	}
	isNew = w.cause != cause
	w.object, w.cause = object, cause
	return w.delays.NextBackOff(), isNew
}

// clear records that the dataset was read.
func (w *waiting) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cause = ""
}

// awaitFile reports in the campaign's status that the prior or an operator cannot be read. The runner tries again, unless the campaign has
// not begun and is to be cancelled.
func (r *runner) awaitFile(ctx context.Context, object string, cause error) error {
	if board.WantsCancel(r.rec) && !r.rec.Released {
		return rejection{cause}
	}
	r.reader.wait(object, cause)
	return errors.Join(cause, r.publishStatus(ctx, 0))
}

package coordinator

import (
	"context"

	"ddiff/coordinator/shard"
	"ddiff/internal/lifecycle"
)

// reader makes the windows of a dataset with a sharder, beside its runner.
type reader struct {
	sharder *shard.Sharder       // nil while the precision of the items is not chosen
	windows <-chan shardedWindow // the next window; nil while the sharder does not read
	service *lifecycle.Service   // fills windows
	waiting waiting              // also set by the sharder
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

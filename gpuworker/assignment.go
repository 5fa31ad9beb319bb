package gpuworker

import (
	"context"
	"sync/atomic"
	"time"

	"ddiff/internal/lifecycle"
	"ddiff/queue"
	"ddiff/restore"
)

// Assignment is what a worker needs to know about the items that it was just given: all of
// them are of one campaign.
type Assignment struct {
	// Campaign is the campaign's id.
	Campaign string
	// Store is where the campaign's results go.
	Store store
	// Sources is where its files are read.
	Sources sources
	// Engine solves with the campaign's prior. It is nil when the prior cannot be used, for
	// the reason in Broken; only a preflight is handed out then.
	Engine *restore.Engine
	// Broken says why there is no Engine.
	Broken error
	// Batch is the number of items that are solved together at most. 0: as many as a Tuner
	// finds best.
	Batch int
	// Cancelled is closed when the campaign is to stop at once. Nil: never.
	Cancelled <-chan struct{}
	// Done is called once, when the worker has settled all the items. Nil: nobody is told.
	Done func()
}

// dispatcher hands out items. It returns after about wait when there are none.
type dispatcher interface {
	Next(ctx context.Context, wait time.Duration) (Assignment, []*queue.Lease, error)
}

// assigned is an assignment under way.
type assigned struct {
	Assignment
	stages
	left atomic.Int32 // items that are not settled
}

func newAssigned(a Assignment, items int) *assigned {
	on := &assigned{Assignment: a, stages: stages{a.Engine, a.Sources}}
	on.left.Store(int32(items))
	if items == 0 && a.Done != nil {
		a.Done()
	}
	return on
}

// settled counts one item.
func (a *assigned) settled() {
	if a.left.Add(-1) == 0 && a.Done != nil {
		a.Done()
	}
}

// cancelled tells whether the campaign is to stop at once.
func (a *assigned) cancelled() bool {
	select {
	case <-a.Cancelled: // a nil channel is never ready
		return true
	default:
		return false
	}
}

// until is ctx that ends when the campaign is to stop at once, too.
func (a *assigned) until(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch *lifecycle.Service
	if a.Cancelled != nil {
		watch = lifecycle.Go(ctx, func(ctx context.Context) error {
			select {
			case <-a.Cancelled:
				cancel(errCancelled)
			case <-ctx.Done():
			}
			return nil
		})
	}
	return ctx, func() {
		watch.Stop()
		cancel(nil)
	}
}

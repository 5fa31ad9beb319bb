package gpuworker

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"ddiff/internal/queue"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/raster"
	"ddiff/restore"
	"ddiff/restore/operator"
)

// Assignment supplies everything that a worker needs to process leased items of one campaign.
type Assignment struct {
	// Campaign is the campaign's id.
	Campaign string
	// Owner is the owner of the campaign, to whom the solver's time is counted; empty: none.
	Owner string
	// Store holds the campaign's results.
	Store store
	// Sources reads the campaign's files.
	Sources job.Sources
	// Engine restores with the campaign's prior. It is nil when the prior or an operator is unusable; then only a preflight is leased.
	Engine *restore.Engine
	// EngineError is the reason why Engine is nil: the prior or an operator is unusable.
	EngineError error
	// Operators are the campaign's operator files by their SHA-256.
	Operators map[string]*operator.File
	// Batch is the largest number of items that are solved together. 0: the size that a Tuner finds.
	Batch int
	// Pixels is the largest number of pixels of images that are solved together, if these are more than DefaultBatch. 0: not limited.
	Pixels int
	// Lifetime ends when the campaign is cancelled immediately. Default: never.
	Lifetime context.Context
	// Refuse, if not nil, is called when this version of ddiff cannot process an item of the campaign. The worker then
	// releases the item for other workers. Default: such an item fails.
	Refuse func(reason error)
	// Deleted, if not nil, reports whether the campaign was deleted. It costs a request to the store.
	Deleted func(ctx context.Context) (bool, error)
	// Done, if not nil, is called once, after the worker has settled all items.
	Done func()
}

// dispatcher leases items. Next returns after about wait when there is no work.
type dispatcher interface {
	Next(ctx context.Context, wait time.Duration) (Assignment, []*queue.Lease, error)
}

// assigned is an assignment in flight.
type assigned struct {
	Assignment
	loader    job.Loader
	unsettled atomic.Int32 // number of items
	looked    atomic.Int64 // when the campaign was last known not to be deleted, in nanoseconds of the wall clock
}

// deletedAge is how long a look for the deletion of a campaign counts: the items that are written together cost one request.
const deletedAge = 5 * time.Second

func newAssigned(a Assignment, items int, decoding *raster.Budget, memory int64) *assigned {
	if a.Lifetime == nil {
		a.Lifetime = context.Background()
	}
	out := &assigned{Assignment: a, loader: job.Loader{Engine: a.Engine, Operators: a.Operators, Sources: a.Sources, Budget: decoding, Memory: memory}}
	out.unsettled.Store(int32(items))
	out.looked.Store(time.Now().UnixNano())
	return out
}

// checkDeleted returns errCancelled if the campaign was deleted: a worker that was stopped since it has leased the items writes no result.
func (a *assigned) checkDeleted(ctx context.Context) error {
	now := time.Now().UnixNano()
	if a.Deleted == nil || time.Duration(now-a.looked.Load()).Abs() < deletedAge {
		return nil
	}
	deleted, err := a.Deleted(ctx)
	if err == nil && deleted {
		return errCancelled
	}
	if err != nil {
		return fmt.Errorf("look whether the campaign was deleted: %w", err)
	}
	a.looked.Store(now)
	return nil
}

// settled counts one settled item.
func (a *assigned) settled() {
	if a.unsettled.Add(-1) == 0 && a.Done != nil {
		a.Done()
	}
}

// cancelled reports whether the campaign was cancelled immediately.
func (a *assigned) cancelled() bool { return a.Lifetime.Err() != nil }

// withLifetime returns a copy of ctx that also ends when the campaign is cancelled immediately.
func (a *assigned) withLifetime(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(a.Lifetime, func() { cancel(errCancelled) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

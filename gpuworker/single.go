package gpuworker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"ddiff/internal/gpuworker/tuner"
	"ddiff/internal/queue"
)

// DefaultBatch is the default number of items that are solved together.
const DefaultBatch = 4

// leaseSlice is the longest lease request. Draining does not interrupt a request: the server could lease an item to it
// before it notices, and the item would be blocked until its lease expires.
const leaseSlice = 50 * time.Millisecond

// leaser is the queue of a campaign.
type leaser interface {
	Lease(ctx context.Context, n int, wait time.Duration) ([]*queue.Lease, error)
}

// Single is the dispatcher of a run in one process: it leases the items of one queue.
type Single struct {
	Queue leaser
	// Items is the assignment of all items. Store, Sources and Engine are required. Batch is also the number of items
	// per lease request; 0 means DefaultBatch.
	Items Assignment
}

// Validate names the first field that is missing or out of range.
func (s Single) Validate() error {
	switch {
	case s.Queue == nil:
		return errors.New("Queue is missing")
	case s.Items.Store == nil:
		return errors.New("Store is missing")
	case s.Items.Sources == nil:
		return errors.New("Sources is missing")
	case s.Items.Engine == nil:
		return errors.New("Engine is missing")
	case s.Items.Batch < 0 || s.Items.Batch > tuner.MaxBatch:
		return fmt.Errorf("Batch: %d is outside 0..%d", s.Items.Batch, tuner.MaxBatch)
	}
	return nil
}

// Next implements the dispatcher of a [Worker].
func (s Single) Next(ctx context.Context, wait time.Duration) (Assignment, []*queue.Lease, error) {
	s.Items.Batch = cmp.Or(s.Items.Batch, DefaultBatch)
	if err := ctx.Err(); err != nil {
		return s.Items, nil, err
	}
	leases, err := s.Queue.Lease(context.WithoutCancel(ctx), s.Items.Batch, min(wait, leaseSlice))
	return s.Items, leases, err
}

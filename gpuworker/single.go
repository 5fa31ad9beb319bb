package gpuworker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ddiff/queue"
)

// DefaultBatch is the number of items that are solved together when nothing else is said.
const DefaultBatch = 4

// maxBatch is the largest number of items that are solved together.
const maxBatch = 1024

// pullSlice is the longest pull. A pull is not interrupted when the worker drains: the server
// might hand an item to the request before it hears of that, and nobody would have the item
// until its lease is over.
const pullSlice = 250 * time.Millisecond

// puller is one campaign's queue.
type puller interface {
	Lease(ctx context.Context, n int, wait time.Duration) ([]*queue.Lease, error)
}

// Single hands out the items of one queue. It is the dispatcher of a run in one process.
type Single struct {
	// Queue is where the items come from.
	Queue puller
	// Items are handed out with this assignment. Store, Sources and Engine are required.
	// Batch items are pulled at a time; 0 means DefaultBatch.
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
	case s.Items.Batch < 0 || s.Items.Batch > maxBatch:
		return fmt.Errorf("Batch: %d is outside 0..%d", s.Items.Batch, maxBatch)
	}
	return nil
}

// Next implements the dispatcher of a [Worker].
func (s Single) Next(ctx context.Context, wait time.Duration) (Assignment, []*queue.Lease, error) {
	if s.Items.Batch == 0 {
		s.Items.Batch = DefaultBatch
	}
	if err := ctx.Err(); err != nil {
		return s.Items, nil, err
	}
	leases, err := s.Queue.Lease(context.WithoutCancel(ctx), s.Items.Batch, min(wait, pullSlice))
	return s.Items, leases, err
}

package queue

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var (
	// ErrDuplicate is returned for an item whose id was published in this epoch already.
	// The item is in the queue, or was worked on: publishing it again is not needed.
	ErrDuplicate = errors.New("already published")
	// ErrSettled is returned by the methods of a lease that was acknowledged, retried,
	// released or buried before.
	ErrSettled = errors.New("lease has ended")
	// ErrNotReady is returned by Lease while the campaign's consumer does not exist, as in
	// the middle of a Reset. Leasing again a moment later works.
	ErrNotReady = errors.New("campaign is being reset")
	// ErrClosed is returned when the connection or the embedded server is closed.
	ErrClosed = errors.New("queue is closed")
	// ErrFull is returned by a publish that the server has no space for.
	ErrFull = errors.New("no space left for the queue")
	// ErrBadName is returned for an id, a campaign or a class that cannot be used.
	ErrBadName = errors.New("bad name")
	// ErrConfig is returned for a setting out of its range; the message names the field.
	ErrConfig = errors.New("bad queue setting")
)

// Refused is an item of a batch that is not known to be in the queue.
type Refused struct {
	// ID is the item's id.
	ID string
	// Err says why; ErrDuplicate is harmless.
	Err error
}

// BatchError is returned by PublishBatch when the queue did not take all items.
type BatchError struct {
	// Total is the number of items in the batch.
	Total int
	// Refused lists the items, in the order of the batch.
	Refused []Refused
}

// Error implements error.
func (e *BatchError) Error() string {
	first := e.Refused[0]
	return fmt.Sprintf("publish batch: %d of %d items refused, the first is %s: %v",
		len(e.Refused), e.Total, first.ID, first.Err)
}

// Unwrap gives the reasons to errors.Is and errors.As.
func (e *BatchError) Unwrap() []error {
	errs := make([]error, len(e.Refused))
	for i, r := range e.Refused {
		errs[i] = r.Err
	}
	return errs
}

// The server's codes for a store that has reached its limit.
const (
	codeInsufficientResources   jetstream.ErrorCode = 10023
	codeStorageResourceExceeded jetstream.ErrorCode = 10047
)

// serverError puts the sentinel that fits in front of an error of the client or the server.
func serverError(err error) error {
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, jetstream.ErrConnectionClosed) {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	var api *jetstream.APIError
	if errors.As(err, &api) && (api.ErrorCode == codeInsufficientResources || api.ErrorCode == codeStorageResourceExceeded) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

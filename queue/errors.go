package queue

import (
	"errors"
	"fmt"
)

// What a call of this package may wrap.
var (
	// ErrDuplicate is returned for an item whose id was published in this epoch and round
	// already. The item is in the queue, or was worked on: publishing it again is not needed.
	ErrDuplicate = errors.New("already published")
	// ErrSettled is returned by the methods of a lease that was acknowledged, retried,
	// released or buried before.
	ErrSettled = errors.New("lease has ended")
	// ErrNotReady is returned while the stream, the bucket or the campaign's consumer does
	// not exist: no coordinator has set it up yet, somebody deleted it, or it is being
	// reset. The same call works once a coordinator has made it again.
	ErrNotReady = errors.New("the coordinator has not set this up")
	// ErrUnavailable is returned when the server has not answered, or could not, for as long
	// as the call was to try. Nothing is known to be lost; the same call may work later.
	ErrUnavailable = errors.New("the queue server does not answer")
	// ErrClosed is returned when the connection or the embedded server is closed.
	ErrClosed = errors.New("queue is closed")
	// ErrFull is returned by a publish that the server has no space for.
	ErrFull = errors.New("no space left for the queue")
	// ErrTooLarge is returned for a message or a record that is larger than allowed.
	ErrTooLarge = errors.New("too large for the queue")
	// ErrBadName is returned for an id, a campaign, a class or a key that cannot be used.
	ErrBadName = errors.New("bad name")
	// ErrConfig is returned for a setting out of its range; the message names the field.
	ErrConfig = errors.New("bad queue setting")
)

// What Connect may wrap, besides ErrConfig.
var (
	// ErrUnreachable means that no server took the connection.
	ErrUnreachable = errors.New("cannot reach the queue server")
	// ErrAccess means that the server refuses the credentials, or that they do not permit
	// what was tried. Any call of this package may return it.
	ErrAccess = errors.New("the queue server refuses access")
	// ErrCertificate means that one side does not accept the other's certificate.
	ErrCertificate = errors.New("no secure connection to the queue server")
	// ErrServerVersion means that the server is too old.
	ErrServerVersion = errors.New("the queue server is too old")
	// ErrNoJetStream means that the server keeps no streams.
	ErrNoJetStream = errors.New("the queue server has no JetStream")
)

// What a Board may wrap.
var (
	// ErrNoRecord means that there is no record of the key.
	ErrNoRecord = errors.New("there is no such record")
	// ErrRecordExists is returned by Create when there is one.
	ErrRecordExists = errors.New("the record exists")
	// ErrConflict is returned by Update when the record has another revision.
	ErrConflict = errors.New("the record was changed by somebody else")
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

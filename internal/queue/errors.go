package queue

import (
	"errors"
	"fmt"

	"ddiff/internal/failure"
)

// Errors that any call of this package may wrap.
var (
	// ErrDuplicate is returned for an item that was published in this epoch and round within the last two minutes. It
	// need not be published again: the item is in the queue, or was settled.
	ErrDuplicate = errors.New("already published")
	// ErrSettled is returned by the methods of a lease that was acknowledged, retried or released before.
	ErrSettled = errors.New("lease has ended")
	// ErrNotReady is returned while the stream, the bucket or the campaign's consumer does not exist: no coordinator
	// has created it yet, or it was deleted. The call succeeds once a coordinator has created it.
	ErrNotReady = failure.New(failure.Server, "the queue is not set up; start a coordinator, or wait until the running one sets it up again")
	// ErrUnavailable is returned when the server did not answer, or could not, until the call's time limit. Nothing is
	// known to be lost; the call may succeed later.
	ErrUnavailable = failure.New(failure.Server, "the queue server does not answer")
	// ErrClosed is returned when the connection or the embedded server is closed.
	ErrClosed = failure.New(failure.Server, "queue is closed")
	// ErrFull is returned by a publish when the server is out of space.
	ErrFull = failure.New(failure.Server, "no space left for the queue")
	// ErrLimits is returned when the server or the account of the streams does not permit them; the message states the remedy.
	ErrLimits = failure.New(failure.Server, "the NATS server does not permit the streams of ddiff")
	// ErrTooLarge is returned for a message or a record above its size limit.
	ErrTooLarge = errors.New("too large for the queue")
	// ErrBadName is returned for an invalid id, campaign, class or key.
	ErrBadName = failure.New(failure.Input, "bad name")
	// ErrStepDown, returned by the function that [Election.Run] calls, ends the term but not Run.
	ErrStepDown = errors.New("this process must not lead")
	// ErrConfig is returned for a setting out of range; the message names the field.
	ErrConfig = failure.New(failure.Usage, "bad queue setting")
)

// Errors of Connect, besides ErrConfig.
var (
	// ErrUnreachable means that no server accepted the connection.
	ErrUnreachable = failure.New(failure.Server, "cannot reach the queue server")
	// ErrAccess means that the server refuses the credentials, or that they do not permit the request. Any call of this
	// package may return it.
	ErrAccess = failure.New(failure.Server, "the queue server refuses access")
	// ErrCertificate means that one side rejects the other side's certificate.
	ErrCertificate = failure.New(failure.Server, "no secure connection to the queue server")
	// ErrServerVersion means that the server is too old.
	ErrServerVersion = failure.New(failure.Server, "the queue server is too old")
	// ErrNoJetStream means that JetStream is disabled on the server.
	ErrNoJetStream = failure.New(failure.Server, "the queue server has no JetStream")
)

// Errors of a Board.
var (
	// ErrNoRecord means that the key has no record.
	ErrNoRecord = failure.New(failure.Input, "no such record")
	// ErrRecordExists is returned by Create when the key has a record.
	ErrRecordExists = errors.New("the record already exists")
	// ErrConflict is returned by Update when the record has another revision.
	ErrConflict = errors.New("the record was changed concurrently")
)

// Refused is an item of a batch that may not be in the queue.
type Refused struct {
	// ID is the item's id.
	ID string
	// Err is the reason; ErrDuplicate is harmless.
	Err error
}

// BatchError is returned by PublishBatch when the queue did not accept all items.
type BatchError struct {
	// Total is the number of items in the batch.
	Total int
	// Refused lists the refused items in the order of the batch.
	Refused []Refused
}

// Error implements error.
func (e *BatchError) Error() string {
	first := e.Refused[0]
	return fmt.Sprintf("publish batch: %d of %d items refused, the first is %s: %v",
		len(e.Refused), e.Total, first.ID, first.Err)
}

// Unwrap returns the reasons, for errors.Is and errors.As.
func (e *BatchError) Unwrap() []error {
	errs := make([]error, len(e.Refused))
	for i, r := range e.Refused {
		errs[i] = r.Err
	}
	return errs
}

// wrap adds an action to an error; nil stays nil.
func wrap(err error, action string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(action, args...), err)
}

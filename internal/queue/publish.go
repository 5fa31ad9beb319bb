package queue

import (
	"context"
	"fmt"
	"slices"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// maxInFlight is the number of messages of a batch that wait for the server's answer at a time.
const maxInFlight = 1024

// maxPending is that number for all batches of a connection, which wait for each other beyond it: out of reach.
const maxPending = 1 << 20

// Work is an item to publish.
type Work struct {
	// Class groups the items that may share a batch, 1 to MaxNameBytes bytes.
	Class string
	// ID is the item's identity, 1 to MaxIDBytes bytes.
	ID string
	// Round distinguishes an intended republication, which the queue accepts again, from an accidental duplicate, which
	// it refuses. The item and its result carry it. 0 or more.
	Round int
	// Payload is the content for the worker, at most MaxPayloadBytes.
	Payload []byte
}

// PublishBatch publishes items and returns when the server has answered for all of them. A bounded number is in flight
// at a time, and the trace context of ctx travels with each. An item that was published in this round within the last
// two minutes is refused with ErrDuplicate. When the server refused items, or ctx ended first, the error is a
// *BatchError that lists every item that may not be stored. Publishing a batch again is harmless.
func (q *Queue) PublishBatch(ctx context.Context, batch []Work) error {
	ctx, span := q.span(ctx, "publish", workSubject, trace.SpanKindProducer, semconv.MessagingBatchMessageCount(len(batch)))
	errs := q.publishAll(ctx, batch)
	var refused []Refused
	for i, err := range errs {
		if err != nil {
			refused = append(refused, Refused{ID: batch[i].ID, Err: err})
		}
	}
	var err error
	if len(refused) > 0 {
		err = &BatchError{Total: len(batch), Refused: refused}
	}
	endSpan(span, err)
	return err
}

// publishAll publishes the batch and returns an error or nil per item. Unanswered items are sent again until q.timeout
// is over.
func (q *Queue) publishAll(ctx context.Context, batch []Work) []error {
	errs := make([]error, len(batch))
	todo := make([]int, len(batch))
	for i := range todo {
		todo[i] = i
	}
	ackLost := make([]bool, len(batch))
	err := q.retry(ctx, func() error {
		before := q.nc.LastError()
		q.sendOnce(ctx, batch, todo, errs)
		var again []int
		for _, i := range todo {
			switch err := errs[i]; {
			case err == ErrDuplicate && ackLost[i]: //nolint:errorlint // set by awaitAck
				errs[i] = nil // a duplicate of the attempt whose answer was lost
			case err != nil && q.nc.IsClosed():
				errs[i] = fmt.Errorf("%w: %w", ErrClosed, err)
			case err != nil && transient(err):
				ackLost[i] = true
				again = append(again, i)
			case err != nil:
				errs[i] = serverError(err)
			}
		}
		todo = again
		denied := q.denied(before, workSubject)
		switch {
		case len(todo) == 0:
			return nil
		case denied != nil:
			return backoff.Permanent(denied)
		case unanswered(errs[todo[0]]) && q.missing(ctx, workStream):
			return backoff.Permanent(ErrNotReady)
		}
		return ErrUnavailable
	})
	if err != nil {
		for _, i := range todo {
			errs[i] = fmt.Errorf("%w: %w", err, errs[i])
		}
	}
	return errs
}

// sendOnce sends the items of todo once, a window at a time, and sets their errors.
func (q *Queue) sendOnce(ctx context.Context, batch []Work, todo []int, errs []error) {
	for window := range slices.Chunk(todo, maxInFlight) {
		futures := make([]jetstream.PubAckFuture, len(window))
		for n, i := range window {
			if errs[i] = ctx.Err(); errs[i] != nil {
				continue
			}
			var msg *nats.Msg
			if msg, errs[i] = q.workMessage(ctx, batch[i]); errs[i] == nil {
				futures[n], errs[i] = q.js.PublishMsgAsync(msg)
			}
		}
		for n, i := range window {
			if errs[i] == nil {
				errs[i] = awaitAck(ctx, futures[n])
			}
		}
	}
}

func awaitAck(ctx context.Context, future jetstream.PubAckFuture) error {
	select {
	case ack := <-future.Ok():
		if ack.Duplicate {
			return ErrDuplicate
		}
		return nil
	case err := <-future.Err():
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (q *Queue) workMessage(ctx context.Context, w Work) (*nats.Msg, error) {
	class, err := token("class", w.Class)
	if err != nil {
		return nil, err
	}
	if len(w.Payload) > MaxPayloadBytes {
		return nil, fmt.Errorf("%w: the payload has %d bytes, %d are allowed", ErrTooLarge, len(w.Payload), MaxPayloadBytes)
	}
	return q.identity(w.ID, w.Round).message(ctx, workSubject+"."+q.campaign+"."+class, w.Payload)
}

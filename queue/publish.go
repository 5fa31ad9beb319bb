package queue

import (
	"context"
	"fmt"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/trace"
)

// maxInFlight is how many messages of a batch wait for the server's answer at a time.
const maxInFlight = 1024

// Work is one item to publish.
type Work struct {
	// Class names the items that may share a batch, 1 to MaxNameBytes bytes.
	Class string
	// ID is the item's identity, 1 to MaxIDBytes bytes.
	ID string
	// Round tells publishing an item anew, which takes it again, from publishing it a second
	// time by mistake, which does not. It travels with the item, its result and its dead
	// letter. 0 or more.
	Round int
	// Payload is what a worker gets, at most MaxPayloadBytes.
	Payload []byte
}

// PublishBatch puts many items into the queue, a bounded number at a time on the wire, and
// returns when the server has answered for all of them. When it did not take some, or ctx
// ended first, the error is a *BatchError that lists every item that is not known to be
// stored; the others are. Publishing the same batch again is harmless.
func (q *Queue) PublishBatch(ctx context.Context, batch []Work) error {
	ctx, span := q.span(ctx, "publish", workSubject, trace.SpanKindProducer, attributeCount.Int(len(batch)))
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
	end(span, err)
	return err
}

// publishAll publishes the batch and returns one error or nil per item. What the server has
// not answered is sent again, as long as there is patience.
func (q *Queue) publishAll(ctx context.Context, batch []Work) []error {
	errs := make([]error, len(batch))
	todo := make([]int, len(batch))
	for i := range todo {
		todo[i] = i
	}
	unsure := make([]bool, len(batch))
	err := q.retry(ctx, func() error {
		q.pass(ctx, batch, todo, errs)
		var again []int
		for _, i := range todo {
			switch err := errs[i]; {
			case err == ErrDuplicate && unsure[i]: //nolint:errorlint // as pass says it
				errs[i] = nil // it is the one whose answer was lost
			case err != nil && q.nc.IsClosed():
				errs[i] = fmt.Errorf("%w: %w", ErrClosed, err)
			case err != nil && transient(err):
				unsure[i] = true
				again = append(again, i)
			case err != nil:
				errs[i] = serverError(err)
			}
		}
		todo = again
		switch {
		case len(todo) == 0:
			return nil
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

// pass sends the items of todo once, a window of them at a time, and sets their errors.
func (q *Queue) pass(ctx context.Context, batch []Work, todo []int, errs []error) {
	var futures [maxInFlight]jetstream.PubAckFuture
	settle := func(n int) {
		if future := futures[n%maxInFlight]; future != nil {
			errs[todo[n]] = answer(ctx, future)
		}
	}
	for n, i := range todo {
		if n >= maxInFlight {
			settle(n - maxInFlight)
		}
		futures[n%maxInFlight] = nil
		if errs[i] = ctx.Err(); errs[i] != nil {
			continue
		}
		msg, err := q.workMessage(ctx, batch[i])
		if err == nil {
			futures[n%maxInFlight], err = q.js.PublishMsgAsync(msg)
		}
		errs[i] = err
	}
	for n := max(0, len(todo)-maxInFlight); n < len(todo); n++ {
		settle(n)
	}
}

// answer waits for the server's answer to one message.
func answer(ctx context.Context, future jetstream.PubAckFuture) error {
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

// workMessage builds the message of an item in the newest epoch.
func (q *Queue) workMessage(ctx context.Context, w Work) (*nats.Msg, error) {
	class, err := token("class", w.Class)
	if err != nil {
		return nil, err
	}
	if len(w.Payload) > MaxPayloadBytes {
		return nil, fmt.Errorf("%w: the payload has %d bytes, %d are allowed", ErrTooLarge, len(w.Payload), MaxPayloadBytes)
	}
	i := identity{campaign: q.campaign, epoch: q.epoch.Load(), round: w.Round, id: w.ID}
	return i.message(ctx, workSubject+"."+q.campaign+"."+class, w.Payload)
}

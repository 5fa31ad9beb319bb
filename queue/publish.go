package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// maxInFlight is how many messages of a batch wait for the server's answer at a time.
const maxInFlight = 256

// Work is one item to publish.
type Work struct {
	// Class names the items that may share a batch, 1 to MaxNameBytes bytes.
	Class string
	// ID is the item's identity, 1 to MaxIDBytes bytes.
	ID string
	// Payload is what a worker gets, at most 1 MiB less the headers.
	Payload []byte
}

// Publish puts an item into the queue and returns when the server has stored it. The trace
// context of ctx travels with it. The id of an item that is already there, or was within the
// last ten minutes since the Reset, gives ErrDuplicate.
func (q *Queue) Publish(ctx context.Context, class, id string, payload []byte) error {
	ctx, span := q.span(ctx, "publish", workSubject, trace.SpanKindProducer, attributeID.String(id))
	err := q.publish(ctx, Work{Class: class, ID: id, Payload: payload})
	end(span, err)
	if err != nil {
		return fmt.Errorf("publish item %s: %w", id, err)
	}
	return nil
}

func (q *Queue) publish(ctx context.Context, w Work) error {
	msg, err := q.workMessage(ctx, w)
	if err != nil {
		return err
	}
	return q.store(ctx, msg)
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

// publishAll publishes the batch and returns one error or nil per item.
func (q *Queue) publishAll(ctx context.Context, batch []Work) []error {
	errs := make([]error, len(batch))
	futures := make([]jetstream.PubAckFuture, len(batch))
	settle := func(i int) {
		if futures[i] != nil {
			errs[i] = answer(ctx, futures[i])
		}
	}
	for i, w := range batch {
		if i >= maxInFlight {
			settle(i - maxInFlight)
		}
		if errs[i] = ctx.Err(); errs[i] != nil {
			continue
		}
		msg, err := q.workMessage(ctx, w)
		if err == nil {
			futures[i], err = q.js.PublishMsgAsync(msg)
		}
		if err != nil {
			errs[i] = serverError(err)
		}
	}
	for i := max(0, len(batch)-maxInFlight); i < len(batch); i++ {
		settle(i)
	}
	return errs
}

// answer waits for the server's answer to one message.
func answer(ctx context.Context, future jetstream.PubAckFuture) error {
	select {
	case ack := <-future.Ok():
		return duplicate(ack)
	case err := <-future.Err():
		return serverError(err)
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
	return q.message(ctx, workSubject+"."+q.campaign+"."+class, q.epoch.Load(), w.ID, w.Payload)
}

// message builds a message with the headers that all have: id, epoch, trace context.
func (q *Queue) message(ctx context.Context, subject string, epoch int64, id string, payload []byte) (*nats.Msg, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	header := nats.Header{
		jetstream.MsgIDHeader: {q.messageID(epoch, id)},
		headerID:              {id},
		headerEpoch:           {formatEpoch(epoch)},
	}
	propagation.TraceContext{}.Inject(ctx, carrier(header))
	return &nats.Msg{Subject: subject, Header: header, Data: payload}, nil
}

// store publishes one message and waits until the server has it.
func (q *Queue) store(ctx context.Context, msg *nats.Msg) error {
	ack, err := q.js.PublishMsg(ctx, msg)
	if err != nil {
		return serverError(err)
	}
	return duplicate(ack)
}

func duplicate(ack *jetstream.PubAck) error {
	if ack.Duplicate {
		return ErrDuplicate
	}
	return nil
}

// storeOnce is store for messages that may be there already.
func (q *Queue) storeOnce(ctx context.Context, msg *nats.Msg) error {
	if err := q.store(ctx, msg); !errors.Is(err, ErrDuplicate) {
		return err
	}
	return nil
}

package queue

import (
	"context"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/trace"
)

// Result is the outcome of one item, as a worker published it.
type Result struct {
	// ID is the item's id.
	ID string
	// Payload is what the worker published.
	Payload []byte
}

// PublishResult stores the outcome of an item for the coordinator. Publishing the outcome of
// the same item again within one epoch changes nothing and is no error.
func (q *Queue) PublishResult(ctx context.Context, id string, payload []byte) error {
	ctx, span := q.span(ctx, "publish", resultSubject, trace.SpanKindProducer, attributeID.String(id))
	msg, err := q.message(ctx, resultSubject+"."+q.campaign, q.epoch.Load(), id, payload)
	if err == nil {
		err = q.storeOnce(ctx, msg)
	}
	end(span, err)
	if err != nil {
		return fmt.Errorf("publish result %s: %w", id, err)
	}
	return nil
}

// Results yields the outcomes of the campaign since its Reset, in the order in which they
// were stored, and goes on with new ones as they come. It ends when ctx does, without an
// error. Any other end is an error, yielded as the last pair. An outcome may be yielded more
// than once, when an item was worked on twice.
func (q *Queue) Results(ctx context.Context) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		err := q.follow(ctx, func(r Result) bool { return yield(r, nil) })
		if err != nil && ctx.Err() == nil {
			yield(Result{}, fmt.Errorf("read results of campaign %s: %w", q.cfg.Campaign, serverError(err)))
		}
	}
}

// follow calls yield with each result until it returns false or ctx ends.
func (q *Queue) follow(ctx context.Context, yield func(Result) bool) error {
	consumer, err := q.js.OrderedConsumer(ctx, resultStream, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{resultSubject + "." + q.campaign},
		DeliverPolicy:  jetstream.DeliverAllPolicy,
	})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	// While the server is away the iterator waits for it and does not look at its context.
	defer context.AfterFunc(ctx, messages.Stop)()
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		if !yield(Result{ID: carrier(msg.Headers()).Get(headerID), Payload: msg.Data()}) {
			return nil
		}
	}
}

package queue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/trace"

	"ddiff/internal/retry"
)

// Result is a published outcome of an item.
type Result struct {
	// ID is the item's id, and Round the round in which the item was published.
	ID    string
	Round int
	// Seq is the result's sequence number. Numbers increase with gaps, also across a deletion of the result stream.
	Seq uint64
	// Behind is the number of results of the campaign that the stream had after this one when it was read.
	Behind uint64
	// Payload is the published content.
	Payload []byte
}

// fullTimeout limits the wait of a publisher for space in the result stream.
const fullTimeout = 4 * time.Minute

// PublishResult publishes the outcome of an item without a lease, in the queue's newest epoch. A worker uses
// Lease.PublishResult. If the stream is full, it waits four minutes for space before it returns ErrFull.
func (q *Queue) PublishResult(ctx context.Context, id string, round int, payload []byte) error {
	_, err := q.publishResult(ctx, q.identity(id, round), payload)
	return err
}

// publishResult reports whether the stream had no such outcome.
func (q *Queue) publishResult(ctx context.Context, i identity, payload []byte) (isNew bool, err error) {
	ctx, span := q.span(ctx, "publish", resultSubject, trace.SpanKindProducer, attributeID.String(i.id))
	msg, err := i.message(ctx, resultSubject+"."+q.campaign, payload)
	if err == nil {
		isNew, err = q.storeNew(ctx, resultStream, msg)
	}
	delays := retry.NewBackOff(firstPause, longestPause)
	for end := time.Now().Add(fullTimeout); errors.Is(err, ErrFull) && time.Now().Before(end) && retry.Sleep(ctx, delays.NextBackOff()) == nil; {
		q.logger.Warn("waiting for space in the result stream", "campaign", q.cfg.Campaign, "id", i.id, "reason", err)
		isNew, err = q.storeNew(ctx, resultStream, msg)
	}
	endSpan(span, err)
	if err != nil {
		return false, fmt.Errorf("publish result %s: %w", i.id, err)
	}
	return isNew, nil
}

// LastResult returns the sequence number of the campaign's newest result, or 0 without results.
func (q *Queue) LastResult(ctx context.Context) (uint64, error) {
	var seq uint64
	err := q.withRetry(ctx, "", func(ctx context.Context) error {
		stream, err := q.js.Stream(ctx, resultStream)
		if err != nil {
			return err
		}
		msg, err := stream.GetLastMsgForSubject(ctx, resultSubject+"."+q.campaign)
		if err == nil {
			seq = msg.Sequence
		}
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		return err
	})
	return seq, wrap(err, "look for the last result of campaign %s", q.cfg.Campaign)
}

// ResultStream identifies the result stream by the time of its creation in nanoseconds, and returns the sequence number
// of its last message, of any campaign. It is above 0 also for an empty stream. ErrNotReady: there is no stream.
func (q *Queue) ResultStream(ctx context.Context) (id int64, last uint64, err error) {
	err = q.withRetry(ctx, "", func(ctx context.Context) error {
		stream, err := q.js.Stream(ctx, resultStream)
		if err == nil {
			info := stream.CachedInfo() // fresh
			id, last = info.Created.UnixNano(), info.State.LastSeq
		}
		return err
	})
	return id, last, wrap(err, "look up the result stream")
}

// PurgeResults removes the campaign's results with sequence numbers up to through. It is idempotent.
func (q *Queue) PurgeResults(ctx context.Context, through uint64) error {
	err := q.purge(ctx, resultStream, resultSubject+"."+q.campaign, jetstream.WithPurgeSequence(through+1))
	return wrap(err, "remove results of campaign %s", q.cfg.Campaign)
}

// Results yields the campaign's outcomes with sequence numbers above after, in the order in which they were stored, and
// continues with new outcomes as they arrive. It survives lost connections and servers. It ends without an error when
// ctx ends; any other error is yielded as the last pair. ErrNotReady: the result stream does not exist.
//
// Each event is yielded once. An item that was worked on twice may have two events.
func (q *Queue) Results(ctx context.Context, after uint64) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		f := &follower{link: q.link, stream: resultStream, filter: resultSubject + "." + q.campaign, after: after}
		err := f.run(ctx, func(msg jetstream.Msg, meta *jetstream.MsgMetadata) bool {
			i := identityOf(q.campaign, msg.Headers())
			return yield(Result{ID: i.id, Round: i.round, Seq: meta.Sequence.Stream, Behind: meta.NumPending, Payload: msg.Data()}, nil)
		})
		if err != nil && ctx.Err() == nil {
			yield(Result{}, fmt.Errorf("read results of campaign %s: %w", q.cfg.Campaign, err))
		}
	}
}

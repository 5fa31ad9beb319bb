package queue

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/trace"
)

// Result is the outcome of one item, as it was published.
type Result struct {
	// ID is the item's id, and Round the one in which it was published.
	ID    string
	Round int
	// Seq is the result's number. Later results have higher ones, with gaps, also when the
	// stream of results was deleted in between.
	Seq uint64
	// Payload is what was published.
	Payload []byte
}

// PublishResult stores the outcome of an item for the coordinator, in the queue's newest
// epoch. It is for outcomes that no worker has: a lease publishes its own. Publishing the
// outcome of the same item again within one epoch and round changes nothing and is no error.
func (q *Queue) PublishResult(ctx context.Context, id string, round int, payload []byte) error {
	return q.publishResult(ctx, identity{campaign: q.campaign, epoch: q.epoch.Load(), round: round, id: id}, payload)
}

func (q *Queue) publishResult(ctx context.Context, i identity, payload []byte) error {
	ctx, span := q.span(ctx, "publish", resultSubject, trace.SpanKindProducer, attributeID.String(i.id))
	msg, err := i.message(ctx, resultSubject+"."+q.campaign, payload)
	if err == nil {
		err = q.store(ctx, resultStream, msg)
	}
	end(span, err)
	if err != nil {
		return fmt.Errorf("publish result %s: %w", i.id, err)
	}
	return nil
}

// LastResult is the number of the campaign's newest result, 0 when there is none.
func (q *Queue) LastResult(ctx context.Context) (uint64, error) {
	var seq uint64
	err := q.persist(ctx, "", func(ctx context.Context) error {
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
	if err != nil {
		return 0, fmt.Errorf("look for the last result of campaign %s: %w", q.cfg.Campaign, err)
	}
	return seq, nil
}

// Results yields the outcomes of the campaign with numbers above after, all when it is 0, in
// the order in which they were stored, and goes on with new ones as they come, through lost
// connections and servers. It ends when ctx does, without an error. Any other end is an error,
// yielded as the last pair; ErrNotReady when the stream of results does not exist.
//
// Each event is yielded once. There may be two of one item, when it was worked on twice.
func (q *Queue) Results(ctx context.Context, after uint64) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		f := &follower{link: q.link, stream: resultStream, filter: resultSubject + "." + q.campaign, after: after}
		err := f.run(ctx, func(msg jetstream.Msg, meta *jetstream.MsgMetadata) bool {
			i := identityOf(q.campaign, msg.Headers())
			return yield(Result{ID: i.id, Round: i.round, Seq: meta.Sequence.Stream, Payload: msg.Data()}, nil)
		}, func() bool { return true })
		if err != nil && ctx.Err() == nil {
			yield(Result{}, fmt.Errorf("read results of campaign %s: %w", q.cfg.Campaign, err))
		}
	}
}

package queue

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
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
	// Age is the time since the server stored the result, by the server's clock, when it was read.
	Age time.Duration
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
	ctx, span := q.span(ctx, "publish", resultSubject, trace.SpanKindProducer, semconv.MessagingMessageID(i.id))
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
			return yield(Result{ID: i.id, Round: i.round, Seq: meta.Sequence.Stream, Behind: meta.NumPending, Age: f.age(meta.Timestamp), Payload: msg.Data()}, nil)
		})
		if err != nil && ctx.Err() == nil {
			yield(Result{}, fmt.Errorf("read results of campaign %s: %w", q.cfg.Campaign, err))
		}
	}
}

const (
	// followHeartbeat is the interval of an idle server's heartbeats. After two missing heartbeats the follower creates
	// a new consumer.
	followHeartbeat = 3 * time.Second
	// followAge is the time after which the server deletes a consumer without a reader.
	followAge = 30 * time.Second
	// followAhead is the number of prefetched messages.
	followAhead = 256
)

// errForeign means that another client has sent a message to the inbox of the follower.
var errForeign = errors.New("a message of another consumer arrived")

// errGap means that a message between two received messages is missing.
var errGap = errors.New("a message did not arrive")

// follower reads the messages of a stream in order, each once, until its context ends. It tracks its own position:
// after the loss of a connection, a server or a leader it creates a new consumer, which starts after the last delivered
// message.
type follower struct {
	*link
	stream, filter string
	// after is the sequence number of the last delivered message.
	after uint64
	// asked is when the consumer was created by the clock of this process, told by that of the server.
	asked, told time.Time
}

// age returns the time since a time of the server.
func (f *follower) age(at time.Time) time.Duration {
	return max(0, time.Since(f.asked)+f.told.Sub(at))
}

// run delivers messages until message returns false or ctx ends. The error is permanent: ErrNotReady without a stream,
// ErrAccess, ErrClosed, or ctx's error.
func (f *follower) run(ctx context.Context, message func(jetstream.Msg, *jetstream.MsgMetadata) bool) error {
	delays := retry.NewBackOff(firstPause, longestPause)
	for {
		before := f.after
		goOn, err := f.consume(ctx, message)
		switch {
		case !goOn:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case f.nc.IsClosed():
			return ErrClosed
		}
		err = serverError(err)
		for _, final := range []error{ErrNotReady, ErrAccess, ErrClosed} {
			if errors.Is(err, final) && !errors.Is(err, jetstream.ErrConsumerDeleted) && !errors.Is(err, jetstream.ErrConsumerNotFound) {
				return err
			}
		}
		f.logger.Warn("reading was interrupted, will resume", "stream", f.stream, "after", f.after, "reason", err)
		if f.after > before {
			delays.Reset()
		}
		if err := retry.Sleep(ctx, delays.NextBackOff()); err != nil {
			return err
		}
	}
}

// consume creates a consumer and delivers its messages until the consumer breaks.
func (f *follower) consume(ctx context.Context, message func(jetstream.Msg, *jetstream.MsgMetadata) bool) (bool, error) {
	consumer, err := f.consumer(ctx)
	if err != nil {
		return true, err
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(followAhead), jetstream.PullExpiry(10*followHeartbeat),
		jetstream.PullHeartbeat(followHeartbeat), jetstream.WithMessagesErrOnMissingHeartbeat(true))
	if err != nil {
		return true, err
	}
	defer messages.Stop()
	defer context.AfterFunc(ctx, messages.Stop)()
	// The server does not resend messages that were lost with the connection.
	defer f.onStatus(messages.Stop, nats.CONNECTED)()
	name := consumer.CachedInfo().Name
	for expect := uint64(1); ; expect++ {
		msg, err := messages.Next()
		if err != nil {
			return true, cmp.Or(f.denied(nil, name), err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			return true, err
		}
		if meta.Stream != f.stream || meta.Consumer != name {
			return true, errForeign
		}
		if meta.Sequence.Consumer != expect {
			return true, errGap
		}
		if !message(msg, meta) {
			return false, nil
		}
		f.after = meta.Sequence.Stream
	}
}

func (f *follower) consumer(ctx context.Context) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	cfg := jetstream.ConsumerConfig{
		Name: "ddiff-read-" + rand.Text(), FilterSubject: f.filter,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: followAge,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: f.after + 1,
	}
	before := f.nc.LastError()
	consumer, err := f.js.CreateConsumer(ctx, f.stream, cfg)
	if err == nil {
		f.asked, f.told = time.Now(), consumer.CachedInfo().TimeStamp
		return consumer, nil
	}
	if denied := f.denied(before, ""); denied != nil {
		return nil, denied
	}
	return nil, err
}

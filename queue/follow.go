package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ddiff/internal/retry"
)

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
	// headersOnly omits the payloads.
	headersOnly bool

	caughtUp bool // the messages present at the start were delivered
}

// run delivers messages until a function returns false or ctx ends. It calls caughtUp once, when all messages that were
// present at the start have been delivered. The error is permanent: ErrNotReady without a stream, ErrAccess, ErrClosed,
// or ctx's error.
func (f *follower) run(ctx context.Context, message func(jetstream.Msg, *jetstream.MsgMetadata) bool, caughtUp func() bool) error {
	delays := retry.NewBackOff(firstPause, longestPause)
	for {
		before := f.after
		goOn, err := f.consume(ctx, message, caughtUp)
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
func (f *follower) consume(ctx context.Context, message func(jetstream.Msg, *jetstream.MsgMetadata) bool, caughtUp func() bool) (bool, error) {
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
	if consumer.CachedInfo().NumPending == 0 && !f.reportCaughtUp(caughtUp) {
		return false, nil
	}
	for expect := uint64(1); ; expect++ {
		msg, err := f.next(ctx, consumer, messages, expect, caughtUp)
		if err != nil || msg == nil {
			return err != nil, err
		}
		meta, err := msg.Metadata()
		if err != nil {
			return true, err
		}
		if meta.Stream != f.stream || meta.Consumer != consumer.CachedInfo().Name {
			return true, errForeign
		}
		if meta.Sequence.Consumer != expect {
			return true, errGap
		}
		if !message(msg, meta) {
			return false, nil
		}
		f.after = meta.Sequence.Stream
		if meta.NumPending == 0 && !f.reportCaughtUp(caughtUp) {
			return false, nil
		}
	}
}

// next waits for the message with the number expect of the consumer; nil means that caughtUp returned false. Messages that
// were counted at the start may have been replaced or removed since, so the last of them may never arrive.
func (f *follower) next(ctx context.Context, consumer jetstream.Consumer, messages jetstream.MessagesContext, expect uint64,
	caughtUp func() bool) (jetstream.Msg, error) {
	for !f.caughtUp {
		msg, err := messages.Next(jetstream.NextMaxWait(time.Second))
		if !errors.Is(err, nats.ErrTimeout) {
			return msg, err
		}
		info, err := consumer.Info(ctx)
		if err != nil {
			return nil, err
		}
		if info.NumPending == 0 && info.Delivered.Consumer < expect && !f.reportCaughtUp(caughtUp) {
			return nil, nil
		}
	}
	return messages.Next()
}

// reportCaughtUp calls caughtUp on the first call.
func (f *follower) reportCaughtUp(caughtUp func() bool) bool {
	if f.caughtUp {
		return true
	}
	f.caughtUp = true
	return caughtUp()
}

// consumer creates a consumer that starts after the last delivered message.
func (f *follower) consumer(ctx context.Context) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	cfg := jetstream.ConsumerConfig{
		Name: "ddiff-read-" + rand.Text(), FilterSubject: f.filter,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: followAge,
		HeadersOnly: f.headersOnly, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: f.after + 1,
	}
	before := f.nc.LastError()
	consumer, err := f.js.CreateConsumer(ctx, f.stream, cfg)
	if err == nil {
		return consumer, nil
	}
	if denied := f.denied(before); denied != nil {
		return nil, denied
	}
	return nil, err
}

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
	for expect := uint64(1); ; expect++ {
		msg, err := messages.Next()
		if err != nil {
			return true, err
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
		return consumer, nil
	}
	if denied := f.denied(before); denied != nil {
		return nil, denied
	}
	return nil, err
}

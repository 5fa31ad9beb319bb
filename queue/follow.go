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
	// followHeartbeat is how often an idle server says that it is there. After two that do
	// not come the consumer is made anew.
	followHeartbeat = 3 * time.Second
	// followAge is how long the server keeps a consumer that nobody reads from.
	followAge = 30 * time.Second
	// followAhead is how many messages are fetched ahead.
	followAhead = 256
)

// errGap says that a message is missing between two that came.
var errGap = errors.New("a message did not arrive")

// follower reads the messages of a stream in their order, each once, for as long as its
// context lasts. It keeps its place itself: when a connection, a server or a leader is lost it
// makes a new consumer, and goes on after the last message that it passed on.
type follower struct {
	*link
	stream, filter string
	// after is the number of the last message that was passed on.
	after uint64
	// latest begins with the newest message of each subject in place of all.
	latest bool
	// bare leaves out the payloads.
	bare bool

	ready bool // what was there at the beginning has been passed on
}

// run passes messages on until a function returns false or ctx ends. caughtUp is called once,
// when all that was there at the beginning has been passed on. An error is one that does not
// pass by itself: ErrNotReady when there is no stream, ErrAccess, ErrClosed, or ctx's.
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
		f.logger.Warn("reads on after an interruption", "stream", f.stream, "after", f.after, "reason", err)
		if f.after > before {
			delays.Reset()
		}
		if err := retry.Sleep(ctx, delays.NextBackOff()); err != nil {
			return err
		}
	}
}

// consume makes a consumer and passes on what comes, until it breaks.
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
	// What the server sent while the connection broke does not come again.
	defer f.onStatus(messages.Stop, nats.CONNECTED)()
	if consumer.CachedInfo().NumPending == 0 && !f.catchUp(caughtUp) {
		return false, nil
	}
	for expect := uint64(1); ; expect++ {
		msg, err := f.next(ctx, consumer, messages, caughtUp)
		if err != nil || msg == nil {
			return err != nil, err
		}
		meta, err := msg.Metadata()
		if err != nil {
			return true, err
		}
		if meta.Sequence.Consumer != expect {
			return true, errGap
		}
		if !message(msg, meta) {
			return false, nil
		}
		f.after = meta.Sequence.Stream
		if meta.NumPending == 0 && !f.catchUp(caughtUp) {
			return false, nil
		}
	}
}

// next waits for a message; nil means that caughtUp wants no more. Messages that were counted
// at the beginning may have been replaced since: then nothing says that the last has come.
func (f *follower) next(ctx context.Context, consumer jetstream.Consumer, messages jetstream.MessagesContext, caughtUp func() bool) (jetstream.Msg, error) {
	for !f.ready {
		msg, err := messages.Next(jetstream.NextMaxWait(time.Second))
		if !errors.Is(err, nats.ErrTimeout) {
			return msg, err
		}
		info, err := consumer.Info(ctx)
		if err != nil {
			return nil, err
		}
		if info.NumPending == 0 && info.Delivered.Stream <= f.after && !f.catchUp(caughtUp) {
			return nil, nil
		}
	}
	return messages.Next()
}

// catchUp calls caughtUp the first time.
func (f *follower) catchUp(caughtUp func() bool) bool {
	if f.ready {
		return true
	}
	f.ready = true
	return caughtUp()
}

// consumer makes a consumer that begins after the last message that was passed on.
func (f *follower) consumer(ctx context.Context) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	cfg := jetstream.ConsumerConfig{
		Name: "ddiff-read-" + rand.Text(), FilterSubject: f.filter,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: followAge,
		HeadersOnly: f.bare,
	}
	switch {
	case f.after > 0:
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, f.after+1
	case f.latest:
		cfg.DeliverPolicy = jetstream.DeliverLastPerSubjectPolicy
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

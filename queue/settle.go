package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/trace"
)

// What a worker tells the server about an item.
const (
	answerAck    = "+ACK"
	answerNak    = "-NAK"
	answerExtend = "+WPI"
	answerTerm   = "+TERM"
)

// Extend makes the lease last for another AckWait from now. A lease that has ended already
// is not brought back, and the server does not tell. It is tried once.
func (l *Lease) Extend(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if err := l.answer(ctx, answerExtend); err != nil {
		return fmt.Errorf("extend item %s: %w", l.ID(), serverError(err))
	}
	return nil
}

// Ack takes the item out of the queue and returns when the server has done so. Acknowledging
// an item whose lease has ended, also one that somebody else works on or has acknowledged, and
// one of a queue that was deleted, is no error.
func (l *Lease) Ack(ctx context.Context) error {
	return l.settle(ctx, "ack", "", func(ctx context.Context) error { return l.end(ctx, answerAck) })
}

// Retry ends the lease; the item is handed out again after delay, or at once when delay is
// not above 0.
func (l *Lease) Retry(ctx context.Context, delay time.Duration) error {
	return l.settle(ctx, "retry", "", func(ctx context.Context) error {
		if delay <= 0 {
			return l.end(ctx, answerNak)
		}
		return l.end(ctx, fmt.Sprintf(`%s {"delay": %d}`, answerNak, delay.Nanoseconds()))
	})
}

// Release ends the lease of an item that was not worked on; anybody may have it at once. It
// does not count as an attempt: a copy of the item that remembers the attempts before takes
// the item's place, behind what waits already. Where the copy cannot be stored, the item
// itself is handed out again, and that counts.
func (l *Lease) Release(ctx context.Context) error {
	return l.settle(ctx, "release", "", func(ctx context.Context) error {
		if l.settled.Load() {
			return ErrSettled
		}
		err := l.copy(ctx)
		if err == nil {
			return l.end(ctx, answerAck)
		}
		if ctx.Err() != nil {
			return err
		}
		l.q.cfg.Logger.Warn("released item counts as tried", "campaign", l.q.cfg.Campaign, "id", l.ID(), "reason", err)
		return l.end(ctx, answerNak)
	})
}

// copy publishes the item again, as it was before this attempt. Two workers that release one
// attempt make one copy.
func (l *Lease) copy(ctx context.Context) error {
	header := maps.Clone(l.msg.Headers())
	releases := number(carrier(header), headerReleases) + 1
	header[headerReleases] = []string{strconv.Itoa(releases)}
	header[headerAttempts] = []string{strconv.Itoa(l.attempt - 1)}
	header[jetstream.MsgIDHeader] = []string{l.identity.messageID() + "/release-" + strconv.Itoa(releases)}
	return l.q.store(ctx, workStream, &nats.Msg{Subject: l.msg.Subject(), Header: header, Data: l.msg.Data()})
}

// settle runs one way to end the lease within its span.
func (l *Lease) settle(ctx context.Context, operation, reason string, act func(context.Context) error) error {
	ctx, span := l.q.span(ctx, operation, workSubject, trace.SpanKindClient,
		attributeID.String(l.ID()), attributeAttempt.Int(l.attempt))
	if reason != "" {
		span.SetAttributes(attributeReason.String(reason))
	}
	err := act(ctx)
	end(span, err)
	if err != nil {
		return fmt.Errorf("%s item %s: %w", operation, l.ID(), err)
	}
	return nil
}

// end sends an answer that ends the lease.
func (l *Lease) end(ctx context.Context, answer string) error {
	err := l.q.persist(ctx, "", func(ctx context.Context) error { return l.answer(ctx, answer) })
	if err == nil {
		l.settled.Store(true)
	}
	return err
}

// answer sends an answer once, and waits until the server has taken it in. One about an item
// of a queue that was deleted has nothing to change.
func (l *Lease) answer(ctx context.Context, answer string) error {
	if l.settled.Load() {
		return ErrSettled
	}
	_, err := l.q.nc.RequestWithContext(ctx, l.msg.Reply(), []byte(answer))
	if !errors.Is(err, nats.ErrNoResponders) {
		return err
	}
	if !l.q.exists(ctx) {
		l.q.cfg.Logger.Warn("item of a queue that was deleted", "campaign", l.q.cfg.Campaign, "id", l.ID())
		return nil
	}
	return err
}

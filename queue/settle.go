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

// Extend makes the lease last for another AckWait from now. A lease that has ended already
// is not brought back, and the server does not tell. It is tried once.
func (l *Lease) Extend(ctx context.Context) error {
	if err := l.send(ctx, l.msg.InProgress); err != nil {
		return fmt.Errorf("extend item %s: %w", l.ID(), serverError(err))
	}
	return nil
}

// Ack takes the item out of the queue and returns when the server has done so. Acknowledging
// an item whose lease has ended, also one that somebody else works on or has acknowledged, and
// one of a queue that was deleted, is no error.
func (l *Lease) Ack(ctx context.Context) error {
	return l.settle(ctx, "ack", "", func(ctx context.Context) error { return l.persist(ctx, l.msg.DoubleAck) })
}

// Retry ends the lease; the item is handed out again after delay, or at once when delay is
// not above 0.
func (l *Lease) Retry(ctx context.Context, delay time.Duration) error {
	return l.settle(ctx, "retry", "", func(ctx context.Context) error {
		return l.tell(ctx, func() error { return l.msg.NakWithDelay(delay) })
	})
}

// Release ends the lease of an item that was not worked on; anybody may have it at once. It
// does not count as an attempt: a copy of the item that remembers the attempts before takes
// the item's place, behind what waits already. Where the copy cannot be stored, the item
// itself is handed out again, and that counts.
func (l *Lease) Release(ctx context.Context) error {
	return l.settle(ctx, "release", "", func(ctx context.Context) error {
		err := l.copy(ctx)
		if err == nil {
			return l.persist(ctx, l.msg.DoubleAck)
		}
		if ctx.Err() != nil {
			return err
		}
		l.q.cfg.Logger.Warn("released item counts as tried", "campaign", l.q.cfg.Campaign, "id", l.ID(), "reason", err)
		return l.tell(ctx, l.msg.Nak)
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
	return l.q.storeOnce(ctx, workStream, &nats.Msg{Subject: l.msg.Subject(), Header: header, Data: l.msg.Data()})
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

// tell sends an answer that the server does not confirm by itself, until it has arrived.
func (l *Lease) tell(ctx context.Context, answer func() error) error {
	sent := false
	return l.persist(ctx, func(ctx context.Context) error {
		err := l.send(ctx, answer)
		if sent && errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
			return nil // it was lost at worst: then the lease runs out
		}
		sent = true
		return err
	})
}

// send sends an answer that the server does not confirm by itself, and waits until the server
// has received it.
func (l *Lease) send(ctx context.Context, answer func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := answer(); err != nil {
		return settledError(err)
	}
	return l.q.confirm(ctx)
}

// persist is that of the queue for an answer. One for a campaign that is gone has nothing to
// end.
func (l *Lease) persist(ctx context.Context, answer func(context.Context) error) error {
	err := l.q.persist(ctx, "", func(ctx context.Context) error {
		err := answer(ctx)
		if !errors.Is(err, nats.ErrNoResponders) {
			return settledError(err)
		}
		if _, lookErr := l.q.js.Consumer(ctx, workStream, l.q.durable()); gone(lookErr) {
			l.q.cfg.Logger.Warn("item of a queue that was deleted", "campaign", l.q.cfg.Campaign, "id", l.ID())
			return nil
		}
		return err
	})
	return err
}

func settledError(err error) error {
	if errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		return ErrSettled
	}
	return err
}

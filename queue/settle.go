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

// The acknowledgements of JetStream.
const (
	ackDone   = "+ACK"
	ackRetry  = "-NAK"
	ackExtend = "+WPI"
	ackTerm   = "+TERM"
)

// Ack removes the item from the queue and returns when the server has done so. It is no error when the lease has ended,
// when another worker works on the item or has acknowledged it, or when the queue was deleted.
func (l *Lease) Ack(ctx context.Context) error {
	return l.settle(ctx, "ack", "", func(ctx context.Context) error { return l.finish(ctx, ackDone) })
}

// Retry ends the lease; the item is delivered again after delay, or at once when delay is not positive.
func (l *Lease) Retry(ctx context.Context, delay time.Duration) error {
	return l.settle(ctx, "retry", "", func(ctx context.Context) error {
		if delay <= 0 {
			return l.finish(ctx, ackRetry)
		}
		return l.finish(ctx, fmt.Sprintf(`%s {"delay": %d}`, ackRetry, delay.Nanoseconds()))
	})
}

// Release ends the lease without using the attempt; the item is available at once, at the end of the queue. Release
// replaces the item by a copy with the earlier number of attempts and the same marks. If the copy cannot be stored, or a
// message of its id is there, the item itself is delivered again if it still exists, and the attempt counts.
func (l *Lease) Release(ctx context.Context) error { return l.ReleaseMarked(ctx, l.Marks()) }

// ReleaseMarked is Release that replaces the marks of the item.
func (l *Lease) ReleaseMarked(ctx context.Context, m Marks) error {
	return l.settle(ctx, "release", "", func(ctx context.Context) error {
		if l.settled.Load() {
			return ErrSettled
		}
		err := l.republish(ctx, m)
		if err == nil {
			return l.finish(ctx, ackDone)
		}
		if ctx.Err() != nil {
			return err
		}
		l.q.cfg.Logger.Warn("the released attempt counts", "campaign", l.q.cfg.Campaign, "id", l.ID(), "reason", err)
		return l.finish(ctx, ackRetry)
	})
}

// republish publishes a copy of the item in its state before this attempt. ErrDuplicate: another worker has released the same
// attempt, or published another message with the id of the copy.
func (l *Lease) republish(ctx context.Context, m Marks) error {
	header := maps.Clone(l.msg.Headers())
	releases := intHeader(header, headerReleases) + 1
	header[headerReleases] = []string{strconv.Itoa(releases)}
	header[headerAttempts] = []string{strconv.Itoa(l.attempt - 1)}
	header[jetstream.MsgIDHeader] = []string{l.identity.messageID() + "/release-" + strconv.Itoa(releases)}
	m.write(header)
	isNew, err := l.q.storeOnce(ctx, workStream, &nats.Msg{Subject: l.msg.Subject(), Header: header, Data: l.msg.Data()})
	if err == nil && !isNew {
		err = ErrDuplicate
	}
	return err
}

// settle runs act, which ends the lease, within a span.
func (l *Lease) settle(ctx context.Context, operation, reason string, act func(context.Context) error) error {
	ctx, span := l.q.span(ctx, operation, workSubject, trace.SpanKindClient,
		attributeID.String(l.ID()), attributeAttempt.Int(l.attempt))
	if reason != "" {
		span.SetAttributes(attributeReason.String(reason))
	}
	err := act(ctx)
	endSpan(span, err)
	return wrap(err, "%s item %s", operation, l.ID())
}

// finish sends an acknowledgement that ends the lease.
func (l *Lease) finish(ctx context.Context, ack string) error {
	err := l.q.withRetry(ctx, "", func(ctx context.Context) error { return l.send(ctx, ack) })
	if err == nil {
		l.settled.Store(true)
	}
	return err
}

// send sends an acknowledgement once and waits until the server has processed it. An item of a deleted queue needs
// none.
func (l *Lease) send(ctx context.Context, ack string) error {
	if l.settled.Load() {
		return ErrSettled
	}
	_, err := l.q.nc.RequestWithContext(ctx, l.msg.Reply(), []byte(ack))
	if !errors.Is(err, nats.ErrNoResponders) {
		return err
	}
	if !l.q.hasConsumer(ctx) {
		l.q.cfg.Logger.Warn("the queue of the item was deleted", "campaign", l.q.cfg.Campaign, "id", l.ID())
		return nil
	}
	return err
}

// PublishNotice publishes an event to the coordinator that is not the outcome of an item, also after the end of the
// lease. It is not idempotent.
func (l *Lease) PublishNotice(ctx context.Context, id string, payload []byte) error {
	i := l.identity
	i.id = id
	ctx, cancel := context.WithTimeout(ctx, l.q.timeout)
	defer cancel()
	msg, err := i.message(ctx, resultSubject+"."+i.campaign, payload)
	if err == nil {
		delete(msg.Header, jetstream.MsgIDHeader)
		err = l.q.store(ctx, resultStream, msg)
	}
	return wrap(err, "publish notice %s", id)
}

// Extend renews leases for another AckWait from now, in one round trip for each connection, however many leases there
// are. It does not revive an ended lease, and the server does not report one; it skips leases that this process has
// settled. When Extend returns nil, the server has received all requests. It makes one attempt, and none after the end of ctx.
func Extend(ctx context.Context, leases ...*Lease) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("extend %d items: %w", len(leases), err)
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	connections := map[*nats.Conn]bool{}
	for _, l := range leases {
		if l.settled.Load() {
			continue
		}
		if err := l.q.nc.Publish(l.msg.Reply(), []byte(ackExtend)); err != nil {
			return fmt.Errorf("extend item %s: %w", l.ID(), serverError(err))
		}
		connections[l.q.nc] = true
	}
	for nc := range connections {
		if err := nc.FlushWithContext(ctx); err != nil {
			return fmt.Errorf("extend %d items: %w", len(leases), serverError(err))
		}
	}
	return nil
}

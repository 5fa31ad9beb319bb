package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Lease is the right to work on one item for a time. One goroutine settles it, with exactly
// one of Ack, Retry, Release and Bury; Extend may be called from another one meanwhile.
type Lease struct {
	q       *Queue
	msg     jetstream.Msg
	attempt int
	epoch   int64
}

// Lease asks for up to n items, n >= 1, and waits about wait for them: it returns as soon as
// it has n, else what there is when the time is over, which may be nothing. Nothing is
// fetched ahead. The first items age while the call waits for more, so for n > 1 the wait is
// cut to half of AckWait.
//
// When ctx ends, the items that were there already are returned with a nil error, and ctx's
// error only without any. ErrNotReady means: again in a moment.
func (q *Queue) Lease(ctx context.Context, n int, wait time.Duration) ([]*Lease, error) {
	if n < 1 || wait <= 0 {
		return nil, fmt.Errorf("%w: lease %d items within %v", ErrConfig, n, wait)
	}
	if n > 1 {
		wait = min(wait, q.cfg.AckWait/2)
	}
	begin := q.cfg.Now()
	leases, err := q.fetch(ctx, n, wait)
	if len(leases) > 0 && err != nil {
		q.cfg.Logger.Warn("lease ended early", "campaign", q.cfg.Campaign, "items", len(leases), "error", err)
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("lease work of campaign %s: %w", q.cfg.Campaign, err)
	}
	if len(leases) > 0 { // no spans for a worker that idles
		_, span := q.cfg.Tracer.Start(ctx, "lease "+workSubject, trace.WithTimestamp(begin),
			trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
				attributeSystem.String("nats"), attributeOperation.String("lease"), attributeSubject.String(workSubject),
				attributeGroup.String(q.cfg.Campaign), attributeCount.Int(len(leases))))
		span.End()
	}
	return leases, nil
}

func (q *Queue) fetch(ctx context.Context, n int, wait time.Duration) ([]*Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	batch, err := q.consumer.Fetch(n, jetstream.FetchContext(pull{ctx, time.Now().Add(wait * 10 / 9)}))
	if err != nil {
		return nil, serverError(err)
	}
	var leases []*Lease
	for msg := range batch.Messages() {
		l, err := q.newLease(msg)
		if err != nil {
			return leases, err
		}
		leases = append(leases, l)
	}
	err = batch.Error()
	switch {
	case ctx.Err() != nil:
		return leases, ctx.Err()
	case q.nc.IsClosed():
		return leases, ErrClosed
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return leases, nil
	case errors.Is(err, jetstream.ErrConsumerDeleted), errors.Is(err, nats.ErrNoResponders):
		return leases, fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return leases, err
}

// pull is a context with a deadline that it does not keep. The client takes nine tenths of
// the time to the deadline as the time after which the server ends the request, and says so
// in a last message. If the client stopped at a deadline of its own, an item that the server
// sent just before would be leased to nobody until AckWait is over.
type pull struct {
	context.Context
	deadline time.Time
}

// Deadline implements context.Context.
func (p pull) Deadline() (time.Time, bool) { return p.deadline, true }

func (q *Queue) newLease(msg jetstream.Msg) (*Lease, error) {
	meta, err := msg.Metadata()
	if err != nil {
		return nil, err
	}
	l := &Lease{q: q, msg: msg, attempt: int(meta.NumDelivered)}
	if epoch, err := parseEpoch(carrier(msg.Headers()).Get(headerEpoch)); err == nil {
		l.epoch = epoch
		q.sawEpoch(epoch)
	}
	return l, nil
}

// ID is the item's id.
func (l *Lease) ID() string { return carrier(l.msg.Headers()).Get(headerID) }

// Class is the item's class, as a token: equal for items that may share a batch.
func (l *Lease) Class() string {
	return l.msg.Subject()[strings.LastIndexByte(l.msg.Subject(), '.')+1:]
}

// Payload is what was published. The caller must not change it.
func (l *Lease) Payload() []byte { return l.msg.Data() }

// Context is ctx with the trace context that was published with the item.
func (l *Lease) Context(ctx context.Context) context.Context {
	return propagation.TraceContext{}.Extract(ctx, carrier(l.msg.Headers()))
}

// Attempt counts how often the item was handed out, from 1.
func (l *Lease) Attempt() int { return l.attempt }

// Last reports whether the item is to be buried when this attempt does not succeed.
func (l *Lease) Last() bool { return l.attempt >= l.q.cfg.MaxAttempts }

// Exhausted reports whether all attempts are used up, as when the workers that made them
// died: the item is to be buried and not tried.
func (l *Lease) Exhausted() bool { return l.attempt > l.q.cfg.MaxAttempts }

// RetryDelay suggests a pause before the next attempt: exponential in the attempt, from
// RetryBase to RetryMax, and spread by the item's id. It is the same for the same attempt of
// the same item.
func (l *Lease) RetryDelay() time.Duration {
	return retryDelay(l.q.cfg.RetryBase, l.q.cfg.RetryMax, l.ID(), l.attempt)
}

// Extend makes the lease last for another AckWait from now. A lease that has ended already
// is not brought back, and the server does not tell.
func (l *Lease) Extend(ctx context.Context) error {
	if err := l.send(ctx, l.msg.InProgress); err != nil {
		return fmt.Errorf("extend item %s: %w", l.ID(), err)
	}
	return nil
}

// Ack takes the item out of the queue and returns when the server has done so. Acknowledging
// an item whose lease has ended, also one that somebody else works on or has acknowledged, is
// no error.
func (l *Lease) Ack(ctx context.Context) error {
	return l.settle(ctx, "ack", "", func(ctx context.Context) error { return settledError(l.msg.DoubleAck(ctx)) })
}

// Retry ends the lease; the item is handed out again after delay, or at once when delay is
// not above 0.
func (l *Lease) Retry(ctx context.Context, delay time.Duration) error {
	return l.settle(ctx, "retry", "", func(ctx context.Context) error {
		return l.send(ctx, func() error { return l.msg.NakWithDelay(delay) })
	})
}

// Release ends the lease of an item that was not worked on; it is handed out again at once.
// It counts as an attempt.
func (l *Lease) Release(ctx context.Context) error {
	return l.settle(ctx, "release", "", func(ctx context.Context) error { return l.send(ctx, l.msg.Nak) })
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

// send sends an answer that the server does not confirm by itself, and waits until the server
// has received it.
func (l *Lease) send(ctx context.Context, answer func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := answer(); err != nil {
		return settledError(err)
	}
	return serverError(l.q.confirm(ctx))
}

func settledError(err error) error {
	if errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		return ErrSettled
	}
	return serverError(err)
}

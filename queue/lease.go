package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"ddiff/internal/retry"
)

// Lease is the right to work on one item for a time. One goroutine settles it, with exactly
// one of Ack, Retry, Release and Bury; Extend may be called from another one meanwhile.
type Lease struct {
	q        *Queue
	msg      jetstream.Msg
	identity identity
	attempt  int
	settled  atomic.Bool
}

// Lease asks for up to n items, n >= 1, and waits about wait for them: it returns as soon as
// it has n, else what there is when the time is over, which may be nothing. Nothing is
// fetched ahead. The first items age while the call waits for more, so for n > 1 the wait is
// cut to half of AckWait.
//
// When ctx ends, the items that were there already are returned with a nil error, and ctx's
// error only without any. ErrNotReady and ErrUnavailable mean: again in a moment.
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
	if q.consumer == nil {
		return nil, fmt.Errorf("%w: the queue is open for inspection only", ErrNotReady)
	}
	if !q.connected(ctx, wait) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: there is no connection", ErrUnavailable)
	}
	before := q.nc.LastError()
	connected, cancel := q.whileConnected(ctx)
	defer cancel()
	batch, err := q.consumer.Fetch(n, jetstream.FetchContext(pull{connected, time.Now().Add(wait * 10 / 9)}))
	if err != nil {
		return nil, fetchError(err)
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
	switch denied := q.denied(before); {
	case ctx.Err() != nil:
		return leases, ctx.Err()
	case q.nc.IsClosed():
		return leases, ErrClosed
	case denied != nil:
		return leases, denied
	}
	if errors.Is(err, nats.ErrNoResponders) && !q.exists(ctx) {
		return leases, fmt.Errorf("%w: the campaign has no consumer", ErrNotReady)
	}
	return leases, fetchError(err)
}

// exists asks once whether the campaign's consumer is there; without an answer it is.
func (q *Queue) exists(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	_, err := q.js.Consumer(ctx, workStream, q.durable())
	return !gone(err)
}

// fetchError sorts the ends of a pull.
func fetchError(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return nil // nothing came
	case errors.Is(err, jetstream.ErrNoHeartbeat), errors.Is(err, jetstream.ErrServerShutdown),
		errors.Is(err, jetstream.ErrConsumerLeadershipChanged), transient(err):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return serverError(err)
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
	l := &Lease{q: q, msg: msg, identity: identityOf(q.campaign, msg.Headers())}
	l.attempt = number(carrier(msg.Headers()), headerAttempts) + int(meta.NumDelivered)
	q.sawEpoch(l.identity.epoch)
	return l, nil
}

// ID is the item's id.
func (l *Lease) ID() string { return l.identity.id }

// Round is the round in which the item was published.
func (l *Lease) Round() int { return l.identity.round }

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

// Attempt counts how often the item was handed out to be worked on, from 1. What a worker
// released does not count.
func (l *Lease) Attempt() int { return l.attempt }

// Last reports whether the item is to be buried when this attempt does not succeed.
func (l *Lease) Last() bool { return l.attempt >= l.q.cfg.MaxAttempts }

// Exhausted reports whether all attempts are used up, as when the workers that made them
// died: the item is to be buried and not tried.
func (l *Lease) Exhausted() bool { return l.attempt > l.q.cfg.MaxAttempts }

// RetryDelay suggests a delay before the next attempt: RetryBase, doubled after every attempt up to RetryMax, times a
// random factor from 1/2 to 1, which spreads the items of a failed batch.
func (l *Lease) RetryDelay() time.Duration {
	delays := retry.NewBackOff(l.q.cfg.RetryBase, l.q.cfg.RetryMax)
	for range l.attempt - 1 {
		delays.NextBackOff()
	}
	return delays.NextBackOff()
}

// PublishResult stores the outcome of the item for the coordinator. Its epoch and round are
// those in which the item was published: publishing an outcome of the same item again changes
// nothing and is no error. It does not end the lease.
func (l *Lease) PublishResult(ctx context.Context, payload []byte) error {
	return l.q.publishResult(ctx, l.identity, payload)
}

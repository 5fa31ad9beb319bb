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

	"ddiff/internal/retry"
)

// Lease is the temporary right to work on one item. One goroutine settles it with exactly one of Ack, Retry, Release
// and Bury; Extend may run concurrently.
type Lease struct {
	q        *Queue
	msg      jetstream.Msg
	identity identity
	attempt  int
	settled  atomic.Bool
}

// Lease requests up to n items, n >= 1, and waits about wait for them. It returns as soon as it has n items, or the
// available ones, possibly none, when wait is over; with wait 0 it returns the available items after one round trip. It
// prefetches nothing. The first leases age while the call waits for more items, so for n > 1 wait is limited to half of
// AckWait.
//
// When ctx ends, Lease returns the items received so far with a nil error, or ctx's error when there are none. After
// ErrNotReady and ErrUnavailable the caller should try again after a moment.
func (q *Queue) Lease(ctx context.Context, n int, wait time.Duration) ([]*Lease, error) {
	if n < 1 || wait < 0 {
		return nil, fmt.Errorf("%w: lease %d items within %v", ErrConfig, n, wait)
	}
	if n > 1 {
		wait = min(wait, q.cfg.AckWait/2)
	}
	leases, err := q.fetch(ctx, n, wait)
	if len(leases) > 0 && err != nil {
		q.cfg.Logger.Warn("lease ended early", "campaign", q.cfg.Campaign, "items", len(leases), "error", err)
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("lease work of campaign %s: %w", q.cfg.Campaign, err)
	}
	return leases, nil
}

func (q *Queue) fetch(ctx context.Context, n int, wait time.Duration) ([]*Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if q.consumer == nil {
		return nil, fmt.Errorf("%w: the queue was opened with Inspect", ErrNotReady)
	}
	if !q.connected(ctx, wait) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: not connected", ErrUnavailable)
	}
	before, end := q.nc.LastError(), time.Now().Add(wait)
	batch, cancel, err := q.pull(ctx, n, wait)
	defer cancel()
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
	if errors.Is(err, nats.ErrNoResponders) && !q.hasConsumer(ctx) {
		return leases, fmt.Errorf("%w: the campaign has no consumer", ErrNotReady)
	}
	if err != nil && strings.Contains(err.Error(), exceededWaiting) {
		// The other calls get the next items. The caller has asked for a wait.
		return leases, retry.Sleep(ctx, time.Until(end))
	}
	return leases, fetchError(err)
}

// exceededWaiting is the server's answer to a pull request above maxWaiting. The client has no error for it.
const exceededWaiting = "Exceeded MaxWaiting"

// pull sends a pull request. The caller calls cancel after it has read the batch.
func (q *Queue) pull(ctx context.Context, n int, wait time.Duration) (batch jetstream.MessageBatch, cancel func(), err error) {
	if wait == 0 {
		batch, err = q.consumer.FetchNoWait(n) // the client waits up to 1 s for an answer
		return batch, func() {}, err
	}
	connected, cancel := q.whileConnected(ctx)
	batch, err = q.consumer.Fetch(n, jetstream.FetchContext(hintedContext{connected, time.Now().Add(wait * 10 / 9)}))
	return batch, cancel, err
}

// hasConsumer asks the server once whether the campaign's consumer exists. Without an answer it returns true.
func (q *Queue) hasConsumer(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	_, err := q.js.Consumer(ctx, workStream, q.durable())
	return !notFound(err)
}

// fetchError maps the end of a pull request to an error of this package.
func fetchError(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return nil // no items
	case errors.Is(err, jetstream.ErrInvalidOption): // the deadline had passed before the client looked at it
		return nil
	case errors.Is(err, jetstream.ErrNoHeartbeat), errors.Is(err, jetstream.ErrServerShutdown),
		errors.Is(err, jetstream.ErrConsumerLeadershipChanged), transient(err):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return serverError(err)
}

// hintedContext is a context that reports a deadline but never expires. The client requests nine tenths of the time to
// the deadline as the lifetime of the pull request, and the server ends the request with a last message. If the client
// stopped at a deadline of its own, an item that the server sent just before would stay leased without a worker until AckWait
// is over.
type hintedContext struct {
	context.Context
	deadline time.Time
}

// Deadline implements context.Context.
func (p hintedContext) Deadline() (time.Time, bool) { return p.deadline, true }

func (q *Queue) newLease(msg jetstream.Msg) (*Lease, error) {
	meta, err := msg.Metadata()
	if err != nil {
		return nil, err
	}
	l := &Lease{q: q, msg: msg, identity: identityOf(q.campaign, msg.Headers())}
	l.attempt = intHeader(msg.Headers(), headerAttempts) + int(meta.NumDelivered)
	q.recordEpoch(l.identity.epoch)
	return l, nil
}

// ID returns the item's id.
func (l *Lease) ID() string { return l.identity.id }

// Round returns the round in which the item was published.
func (l *Lease) Round() int { return l.identity.round }

// Class returns the item's class as a token. Items with equal classes may share a batch.
func (l *Lease) Class() string {
	return l.msg.Subject()[strings.LastIndexByte(l.msg.Subject(), '.')+1:]
}

// Payload returns the published payload, which the caller must not modify.
func (l *Lease) Payload() []byte { return l.msg.Data() }

// Context returns ctx with the trace context that was published with the item.
func (l *Lease) Context(ctx context.Context) context.Context {
	return propagation.TraceContext{}.Extract(ctx, carrier{l.msg.Headers()})
}

// Attempt returns the number of this attempt at the item, from 1. Released attempts do not count.
func (l *Lease) Attempt() int { return l.attempt }

// Last reports whether the item must be buried when this attempt fails.
func (l *Lease) Last() bool { return l.attempt >= l.q.cfg.MaxAttempts }

// Exhausted reports whether no attempts are left, for example because the previous workers died: the item must be
// buried without another attempt.
func (l *Lease) Exhausted() bool { return l.attempt > l.q.cfg.MaxAttempts }

// RetryDelay suggests a delay before the next attempt: RetryBase, doubled after every attempt up to 60 times that, times a
// random factor from 1/2 to 1, which spreads the items of a failed batch.
func (l *Lease) RetryDelay() time.Duration {
	delays := retry.NewBackOff(l.q.cfg.RetryBase, 60*l.q.cfg.RetryBase)
	for range l.attempt - 1 {
		delays.NextBackOff()
	}
	return delays.NextBackOff()
}

// PublishResult publishes the outcome of the item to the coordinator, under the epoch and round in which the item was
// published. It does not end the lease. A reader ignores a second outcome of an item.
func (l *Lease) PublishResult(ctx context.Context, payload []byte) error {
	_, err := l.PublishOutcome(ctx, payload)
	return err
}

// PublishOutcome is PublishResult, and reports whether the outcome is new: the stream had no outcome with the id of this item,
// epoch and round, as far as it remembers ids, for two minutes.
func (l *Lease) PublishOutcome(ctx context.Context, payload []byte) (isNew bool, err error) {
	return l.q.publishResult(ctx, l.identity, payload)
}

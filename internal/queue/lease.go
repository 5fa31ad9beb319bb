package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"ddiff/internal/retry"
)

// Lease is the temporary right to work on one item. One goroutine settles it with exactly one of Ack, Retry and Release;
// Extend may run concurrently.
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
	if !q.nc.IsConnected() && !q.nc.IsClosed() {
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
	switch denied := q.denied(before, q.durable()); {
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

// Last reports whether the item is dead when this attempt fails.
func (l *Lease) Last() bool { return l.attempt >= l.q.cfg.MaxAttempts }

// Deliveries is the number of attempts that the server makes possible for an item whose workers give no answer, in campaigns with a number
// of attempts for the others.
func Deliveries(maxAttempts int) int { return deliveriesPerAttempt * maxAttempts }

// Exhausted reports whether no attempts are left, for example because the previous workers died: the item is dead without
// another attempt, unless its worker sees reason for one, of [Deliveries] at most.
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

// The acknowledgements of JetStream.
const (
	ackDone   = "+ACK"
	ackRetry  = "-NAK"
	ackExtend = "+WPI"
)

// Ack removes the item from the queue and returns when the server has done so. It is no error when the lease has ended,
// when another worker works on the item or has acknowledged it, or when the queue was deleted.
func (l *Lease) Ack(ctx context.Context) error {
	return l.settle(ctx, "ack", func(ctx context.Context) error { return l.finish(ctx, ackDone) })
}

// Retry ends the lease; the item is delivered again after delay, or at once when delay is not positive.
func (l *Lease) Retry(ctx context.Context, delay time.Duration) error {
	return l.settle(ctx, "retry", func(ctx context.Context) error {
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
	return l.settle(ctx, "release", func(ctx context.Context) error {
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
func (l *Lease) settle(ctx context.Context, operation string, act func(context.Context) error) error {
	ctx, span := l.q.span(ctx, operation, workSubject, trace.SpanKindClient,
		semconv.MessagingMessageID(l.ID()), attribute.Int("ddiff.queue.attempt", l.attempt))
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

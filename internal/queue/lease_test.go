package queue_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"ddiff/internal/queue"
	"ddiff/internal/queue/queuetest"
)

const shortWait = 500 * time.Millisecond

func TestExpiredLeaseIsRedelivered(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{AckWait: shortWait, MaxAttempts: 2})
	must(t, publish(t.Context(), q, "c", "1", []byte("p")))
	begin := time.Now()
	for attempt := 1; attempt <= queue.Deliveries(2)+2; attempt++ { // with the two spare deliveries
		l := lease(t, q)
		if l.Attempt() != attempt || l.Last() != (attempt >= 2) || l.Exhausted() != (attempt > 2) {
			t.Fatalf("attempt %d, last %t, exhausted %t, want attempt %d", l.Attempt(), l.Last(), l.Exhausted(), attempt)
		}
		// The first delivery is later than begin, and each other one is AckWait later than the one before.
		if took, least := time.Since(begin), time.Duration(attempt-1)*shortWait; took < least {
			t.Fatalf("attempt %d after %v, before %v", attempt, took, least)
		}
	}
	wantNone(t, q, 3*shortWait)
}

func TestExtendRenewsLease(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{AckWait: shortWait, MaxAttempts: 1000})
	must(t, publish(t.Context(), q, "c", "1", nil))
	held := wantRenewed(t, q, shortWait, 3*shortWait, shortWait/10, func() []*queue.Lease { return []*queue.Lease{lease(t, q)} })
	if again := lease(t, q); again.Attempt() != held[0].Attempt()+1 { // no further Extend
		t.Fatalf("attempt %d, want %d", again.Attempt(), held[0].Attempt()+1)
	}
}

// wantRenewed takes leases, extends them for a time, and checks that no item is delivered to q meanwhile, for wait after each
// extension. When the machine is so slow that leases may have ended before their extension, wantRenewed begins again. It
// returns the leases.
func wantRenewed(t *testing.T, q *queue.Queue, ackWait, during, wait time.Duration, take func() []*queue.Lease) []*queue.Lease {
	t.Helper()
	for deadline := time.Now().Add(3 * patience); time.Now().Before(deadline); {
		renewed := time.Now() // the leases last until ackWait later, or longer
		leases := take()
		var again []*queue.Lease
		for begin := time.Now(); time.Since(renewed) < ackWait; {
			if time.Since(begin) >= during {
				return leases
			}
			now := time.Now()
			must(t, queue.Extend(t.Context(), leases...))
			if time.Since(renewed) >= ackWait {
				break
			}
			renewed = now
			var err error
			again, err = q.Lease(t.Context(), 1, wait)
			must(t, err)
			if len(again) > 0 && time.Since(renewed) < ackWait {
				t.Fatalf("item %s was delivered again, attempt %d", again[0].ID(), again[0].Attempt())
			}
		}
		for _, l := range append(leases, again...) {
			must(t, l.Retry(t.Context(), 0))
		}
	}
	t.Fatal("timeout: the machine is too slow to extend the leases")
	return nil
}

func TestAckAfterRedelivery(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{AckWait: shortWait})
	must(t, publish(t.Context(), q, "c", "1", nil))
	slow, quick := lease(t, q), lease(t, q)
	if quick.Attempt() != 2 {
		t.Fatalf("attempt %d, want 2", quick.Attempt())
	}
	must(t, slow.Ack(t.Context()))
	wantDepth(t, q, 0, 0)
	must(t, queue.Extend(t.Context(), quick))
	must(t, quick.Ack(t.Context()))
	wantNone(t, q, 2*shortWait)
	wantDepth(t, q, 0, 0)
}

func TestRetryAndRelease(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{})
	must(t, publish(t.Context(), q, "c", "1", nil))
	const delay = 400 * time.Millisecond
	begin := time.Now()
	must(t, lease(t, q).Retry(t.Context(), delay))
	wantDepth(t, q, 0, 1)
	l := lease(t, q)
	if took := time.Since(begin); took < delay || l.Attempt() != 2 {
		t.Fatalf("attempt %d after %v, want 2 after %v", l.Attempt(), took, delay)
	}
	must(t, l.Release(t.Context()))
	wantDepth(t, q, 1, 0)
	mustBe(t, l.Ack(t.Context()), queue.ErrSettled)
	if l = lease(t, q); l.Attempt() != 2 || l.Last() {
		t.Fatalf("attempt %d after Release, want 2 again", l.Attempt())
	}
	must(t, l.Retry(t.Context(), 0))
	if l = lease(t, q); l.Attempt() != 3 || !l.Last() {
		t.Fatalf("attempt %d after Retry, want 3, the last one", l.Attempt())
	}
	must(t, l.Ack(t.Context()))
	wantDepth(t, q, 0, 0)
}

func TestLeaseBatches(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{})
	for i := range 5 {
		must(t, publish(t.Context(), q, "c", fmt.Sprint(i), nil))
	}
	first, err := q.Lease(t.Context(), 3, patience)
	must(t, err)
	if len(first) != 3 {
		t.Fatalf("%d items, want 3", len(first))
	}
	wantDepth(t, q, 2, 3) // no prefetch
	rest, err := q.Lease(t.Context(), 3, time.Second)
	must(t, err)
	if len(rest) != 2 {
		t.Fatalf("%d items, want the remaining 2", len(rest))
	}
	const wait = 200 * time.Millisecond
	begin := time.Now()
	wantNone(t, q, wait)
	if took := time.Since(begin); took < wait*9/10 || took > 10*time.Second {
		t.Errorf("the call took %v, want about %v", took, wait)
	}
	for _, n := range []int{0, -1} {
		_, err := q.Lease(t.Context(), n, time.Second)
		mustBe(t, err, queue.ErrConfig)
	}
	_, err = q.Lease(t.Context(), 1, -1)
	mustBe(t, err, queue.ErrConfig)
}

// Without a wait, Lease returns the available items, also those that are delivered again.
func TestLeaseWithoutWait(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	q := open(t, server, queue.Config{})
	wantNone(t, q, 0)
	for i := range 3 {
		must(t, publish(t.Context(), q, "c", fmt.Sprint(i), nil))
	}
	wantDepth(t, q, 3, 0)
	leases, err := q.Lease(t.Context(), 8, 0)
	must(t, err)
	if len(leases) != 3 {
		t.Fatalf("%d items, want the 3 available", len(leases))
	}
	must(t, leases[0].Ack(t.Context()))
	must(t, leases[1].Retry(t.Context(), 0))
	again, err := q.Lease(t.Context(), 8, 0)
	must(t, err)
	if len(again) != 1 || again[0].Attempt() != 2 {
		t.Fatalf("%d items after a retry, want 1", len(again))
	}
	// The other two leases expire, after a time that is short from now on: the calls above may take longer.
	open(t, server, queue.Config{AckWait: shortWait})
	for deadline, n := time.Now().Add(patience), 0; n < 2 && time.Now().Before(deadline); {
		expired, err := q.Lease(t.Context(), 8, 0)
		must(t, err)
		for _, l := range expired {
			must(t, l.Ack(t.Context()))
			n++
		}
	}
	wantDepth(t, q, 0, 0)
}

func TestLeaseOfBatchIsLimitedToHalfOfAckWait(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{AckWait: shortWait})
	must(t, publish(t.Context(), q, "c", "1", nil))
	wantDepth(t, q, 1, 0) // the consumer learns of an item later than the stream
	leases, err := q.Lease(t.Context(), 8, patience)
	must(t, err)
	if len(leases) != 1 || leases[0].Attempt() != 1 {
		t.Fatalf("%d leases, want 1", len(leases))
	}
}

func TestLeaseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		leases, err := q.Lease(ctx, 1, time.Hour)
		if len(leases) != 0 || ctx.Err() == nil || err == nil {
			t.Errorf("%d leases, error %v", len(leases), err)
		}
	})
	cancel()
	wg.Wait()
	_, err := q.Lease(ctx, 1, time.Hour)
	mustBe(t, err, context.Canceled)
	// An abandoned request leases no item.
	must(t, publish(t.Context(), q, "c", "1", nil))
	if l := lease(t, q); l.Attempt() != 1 {
		t.Fatalf("attempt %d, want 1", l.Attempt())
	}
}

func TestManyWorkers(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	const items, workers = 200, 8
	batch := make([]queue.Work, items)
	for i := range batch {
		batch[i] = queue.Work{Class: "c", ID: fmt.Sprint(i)}
	}
	must(t, open(t, server, queue.Config{}).PublishBatch(t.Context(), batch))
	var mu sync.Mutex
	done := map[string]int{}
	var wg sync.WaitGroup
	for range workers {
		q := open(t, server, queue.Config{})
		wg.Go(func() {
			for {
				leases, err := q.Lease(t.Context(), 4, 500*time.Millisecond)
				if err != nil || len(leases) == 0 {
					if err != nil {
						t.Errorf("Lease: %v", err)
					}
					return
				}
				for _, l := range leases {
					if err := l.Ack(t.Context()); err != nil {
						t.Errorf("Ack: %v", err)
					}
					mu.Lock()
					done[l.ID()]++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for id, n := range done {
		if n != 1 {
			t.Errorf("item %s was delivered %d times", id, n)
		}
	}
	if len(done) != items {
		t.Errorf("%d items done, want %d", len(done), items)
	}
}

// TestLeaseEndsEarlyWithItems deletes the campaign's consumer while a call waits for its second item: it returns the first.
func TestLeaseEndsEarlyWithItems(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	q := open(t, server, queue.Config{})
	nc := join(t, server)
	js := streamsOf(t, nc)
	must(t, publish(t.Context(), q, "c", "1", nil))
	var leases []*queue.Lease
	ended := make(chan error, 1)
	go func() {
		var err error
		leases, err = q.Lease(t.Context(), 2, patience)
		ended <- err
	}()
	wantDepth(t, q, 0, 1)
	must(t, js.DeleteConsumer(t.Context(), "DDIFF_WORK", "ddiff-camp"))
	must(t, <-ended)
	if len(leases) != 1 || leases[0].ID() != "1" {
		t.Errorf("%d leases, want that of the item", len(leases))
	}
}

// TestSettlingSpans: a call of Lease without items makes no span; the span of a failed call has its error.
func TestSettlingSpans(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	q := newQueue(t, queue.Config{Tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")})
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1"}, {Class: "c", ID: "2"}}))
	first, second := lease(t, q), lease(t, q)
	must(t, first.Ack(t.Context()))
	must(t, second.Release(t.Context()))
	mustBe(t, second.Retry(t.Context(), 0), queue.ErrSettled)
	spans := map[string]sdktrace.ReadOnlySpan{}
	for _, span := range recorder.Ended() {
		spans[span.Name()] = span
	}
	for name, failed := range map[string]bool{
		"publish ddiff.work": false, "ack ddiff.work": false, "release ddiff.work": false, "retry ddiff.work": true,
	} {
		span := spans[name]
		if span == nil {
			t.Errorf("no span %s", name)
			continue
		}
		attributes := attribute.NewSet(span.Attributes()...)
		if (span.Status().Code == codes.Error) != failed || attributes.HasValue("error.type") != failed {
			t.Errorf("span %s has the status %+v", name, span.Status())
		}
	}
}

// 64 leases of a worker at a round trip of 100 ms are extended in one round trip: all of them survive several lease times,
// each of which is shorter than 64 round trips.
func TestExtendTakesOneRoundTrip(t *testing.T) {
	t.Parallel()
	const batch, ackWait = 64, time.Second
	s := serve(t, jetStream(t))
	q := openOn(t, dial(t, s), queue.Config{Campaign: "slow", AckWait: ackWait, MaxAttempts: 1000})
	work := make([]queue.Work, batch)
	for i := range work {
		work[i] = queue.Work{Class: "c", ID: fmt.Sprint(i)}
	}
	must(t, q.PublishBatch(t.Context(), work))
	slow, err := nats.Connect(s.ClientURL(), nats.SetCustomDialer(queuetest.Dialer{RoundTrip: 100 * time.Millisecond}))
	must(t, err)
	t.Cleanup(slow.Close)
	far := attach(t, slow, queue.Config{Campaign: "slow"})
	wantRenewed(t, q, ackWait, 3*ackWait/2, ackWait/4, func() (leases []*queue.Lease) {
		for begin := time.Now(); len(leases) < batch; {
			more, err := far.Lease(t.Context(), batch-len(leases), patience)
			must(t, err)
			if leases = append(leases, more...); time.Since(begin) > patience {
				t.Fatalf("%d leases, want %d", len(leases), batch)
			}
		}
		return leases
	})
}

// TestExpiringCallsOfLeaseLoseNoItem publishes items during a series of short calls of Lease: each call must return the
// items that the server delivered to it, at their first attempt.
func TestExpiringCallsOfLeaseLoseNoItem(t *testing.T) {
	t.Parallel()
	const items = 300
	q := newQueue(t, queue.Config{})
	published := make(chan error, 1)
	go func() {
		for i := range items {
			if err := publish(t.Context(), q, "c", fmt.Sprint(i), nil); err != nil {
				published <- err
				return
			}
			time.Sleep(time.Millisecond) // spreads the items, so that calls end in between
		}
		published <- nil
	}()
	last := time.Now()
	for got := 0; got < items; {
		if time.Since(last) > patience {
			t.Fatalf("%d items of %d, and none within %v: the others are leased without a worker", got, items, patience)
		}
		leases, err := q.Lease(t.Context(), 4, 2*time.Millisecond)
		if errors.Is(err, queue.ErrUnavailable) {
			continue // a busy server may not answer: callers retry
		}
		must(t, err)
		for _, l := range leases {
			if l.Attempt() != 1 {
				t.Fatalf("item %s at attempt %d, want 1", l.ID(), l.Attempt())
			}
			must(t, l.Ack(t.Context()))
			got, last = got+1, time.Now()
		}
	}
	must(t, <-published)
}

// More workers than the server lets wait ask for items of an empty campaign: the others wait as well, without an error, and
// get items later.
func TestLeaseAboveWaitingLimit(t *testing.T) {
	t.Parallel()
	s := serve(t, jetStream(t))
	q := openOn(t, dial(t, s), queue.Config{Campaign: "crowded"})
	crowd, err := nats.Connect(s.ClientURL())
	must(t, err)
	t.Cleanup(crowd.Close)
	inbox := crowd.NewRespInbox()
	answers, err := crowd.SubscribeSync(inbox)
	must(t, err)
	for range 4096 {
		must(t, crowd.PublishRequest("$JS.API.CONSUMER.MSG.NEXT.DDIFF_WORK.ddiff-crowded", inbox, []byte(`{"batch":1,"expires":3600000000000}`)))
	}
	must(t, crowd.Flush())
	const wait = 200 * time.Millisecond
	begin := time.Now()
	leases, err := q.Lease(t.Context(), 1, wait)
	if took := time.Since(begin); err != nil || len(leases) != 0 || took < wait {
		t.Fatalf("%d leases after %v: %v", len(leases), took, err)
	}
	must(t, answers.Unsubscribe()) // the server drops requests that nobody waits for
	must(t, crowd.Flush())
	must(t, publish(t.Context(), q, "c", "1", nil))
	for deadline := time.Now().Add(patience); len(leases) == 0; {
		leases, err = q.Lease(t.Context(), 1, wait)
		must(t, err)
		if time.Now().After(deadline) {
			t.Fatal("timeout: no item")
		}
	}
}

// TestReleaseUsesNoAttempt releases an item more often than MaxAttempts.
func TestReleaseUsesNoAttempt(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{MaxAttempts: 2})
	of := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{7}, SpanID: trace.SpanID{8}, TraceFlags: trace.FlagsSampled})
	ctx := trace.ContextWithSpanContext(t.Context(), of)
	must(t, q.PublishBatch(ctx, []queue.Work{{Class: "a class", ID: "1", Round: 4, Payload: []byte("payload")}}))
	for range 10 {
		l := lease(t, q)
		got := trace.SpanContextFromContext(l.Context(t.Context()))
		if l.Attempt() != 1 || l.ID() != "1" || l.Round() != 4 || l.Class() != "a=20class" || string(l.Payload()) != "payload" || !got.Equal(of.WithRemote(true)) {
			t.Fatalf("item %s of %s, round %d, attempt %d, %q, trace %s", l.ID(), l.Class(), l.Round(), l.Attempt(), l.Payload(), got.TraceID())
		}
		must(t, l.Release(t.Context()))
		wantDepth(t, q, 1, 0)
	}
	must(t, lease(t, q).Ack(t.Context()))
	wantDepth(t, q, 0, 0)
}

// TestReleaseByTwoWorkersLeavesOneItem has a slow and a quick worker release the same item.
func TestReleaseByTwoWorkersLeavesOneItem(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{AckWait: shortWait})
	must(t, publish(t.Context(), q, "c", "1", nil))
	slow, quick := lease(t, q), lease(t, q)
	must(t, quick.Release(t.Context()))
	must(t, slow.Release(t.Context()))
	wantDepth(t, q, 1, 0)
	l := lease(t, q)
	if l.Attempt() != 2 { // the quick worker's attempt does not count, the slow worker's lease expired
		t.Fatalf("attempt %d, want 2", l.Attempt())
	}
	must(t, l.Ack(t.Context()))
	wantNone(t, q, 2*shortWait)
}

// TestReleaseWithoutSpaceCountsTheAttempt releases an item to a server that cannot store its copy.
func TestReleaseWithoutSpaceCountsTheAttempt(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	nc := join(t, server)
	q := open(t, server, queue.Config{})
	js := streamsOf(t, nc)
	stream, err := js.Stream(t.Context(), "DDIFF_WORK")
	must(t, err)
	limited := stream.CachedInfo().Config
	limited.MaxBytes = 1500
	_, err = js.UpdateStream(t.Context(), limited)
	must(t, err)
	must(t, publish(t.Context(), q, "c", "1", make([]byte, 1000)))
	mustBe(t, publish(t.Context(), q, "c", "2", make([]byte, 1000)), queue.ErrFull)
	must(t, lease(t, q).Release(t.Context()))
	l := lease(t, q)
	if l.ID() != "1" || l.Attempt() != 2 {
		t.Fatalf("item %s, attempt %d, want item 1 at attempt 2", l.ID(), l.Attempt())
	}
	must(t, l.Ack(t.Context()))
	must(t, publish(t.Context(), q, "c", "2", make([]byte, 1000)))
}

// TestMarksTravelWithReleasedItem releases an item with marks, and again without a change.
func TestMarksTravelWithReleasedItem(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{MaxAttempts: 2})
	must(t, publish(t.Context(), q, "c", "1", []byte("payload")))
	l := lease(t, q)
	if got := l.Marks(); !reflect.DeepEqual(got, queue.Marks{}) {
		t.Fatalf("a new item has the marks %+v", got)
	}
	want := queue.Marks{Faults: 3, Disputed: []string{"gpu 1", "größe,2"}, Passes: 2}
	must(t, l.ReleaseMarked(t.Context(), want))
	must(t, lease(t, q).Release(t.Context()))
	l = lease(t, q)
	if got := l.Marks(); !reflect.DeepEqual(got, want) || l.Attempt() != 1 || string(l.Payload()) != "payload" {
		t.Fatalf("marks %+v at attempt %d, want %+v at 1", got, l.Attempt(), want)
	}
	must(t, l.ReleaseMarked(t.Context(), queue.Marks{}))
	l = lease(t, q)
	if got := l.Marks(); !reflect.DeepEqual(got, queue.Marks{}) {
		t.Fatalf("the marks %+v were not removed", got)
	}
	must(t, l.Ack(t.Context()))
}

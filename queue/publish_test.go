package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"ddiff/queue"
)

func TestPublishLeaseAck(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{})
	must(t, publish(t.Context(), q, "sr 4x/256", "item-1", []byte("payload")))
	wantDepth(t, q, 1, 0)
	l := lease(t, q)
	if l.ID() != "item-1" || string(l.Payload()) != "payload" || l.Attempt() != 1 || l.Last() || l.Exhausted() {
		t.Fatalf("leased %s %q, attempt %d, last %t", l.ID(), l.Payload(), l.Attempt(), l.Last())
	}
	if want := "sr=204x=2F256"; l.Class() != want {
		t.Errorf("class is %s, want %s", l.Class(), want)
	}
	wantDepth(t, q, 0, 1)
	must(t, l.Ack(t.Context()))
	wantDepth(t, q, 0, 0)
	mustBe(t, l.Ack(t.Context()), queue.ErrSettled)
	mustBe(t, l.Retry(t.Context(), 0), queue.ErrSettled)
	must(t, queue.Extend(t.Context(), l)) // settled: nothing is sent
}

func TestPublishRefusesDuplicates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir)
	q := open(t, server, queue.Config{})
	must(t, publish(t.Context(), q, "c", "twice", []byte("first")))
	mustBe(t, publish(t.Context(), q, "c", "twice", []byte("second")), queue.ErrDuplicate)
	mustBe(t, publish(t.Context(), q, "other class", "twice", []byte("second")), queue.ErrDuplicate)
	server.Stop()

	q = open(t, start(t, dir), queue.Config{})
	mustBe(t, publish(t.Context(), q, "c", "twice", []byte("second")), queue.ErrDuplicate)
	l := lease(t, q)
	if string(l.Payload()) != "first" {
		t.Fatalf("payload %q, want the first", l.Payload())
	}
	must(t, l.Ack(t.Context()))
	wantDepth(t, q, 0, 0)
}

func TestPublishBadNames(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{})
	long := strings.Repeat("x", 300)
	for _, c := range []struct{ name, class, id string }{
		{"no class", "", "1"}, {"long class", long, "1"}, {"no id", "c", ""}, {"long id", "c", long},
		{"newline in id", "c", "a\nb"}, {"space at the end of id", "c", "a "},
	} {
		err := publish(t.Context(), q, c.class, c.id, nil)
		if !errors.Is(err, queue.ErrBadName) {
			t.Errorf("%s: %v, want ErrBadName", c.name, err)
		}
	}
	wantDepth(t, q, 0, 0)
}

func TestPublishBatch(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{})
	const n = 1000
	batch := make([]queue.Work, n)
	for i := range batch {
		batch[i] = queue.Work{Class: fmt.Sprint("class ", i%3), ID: fmt.Sprint("item-", i), Payload: fmt.Append(nil, i)}
	}
	must(t, q.PublishBatch(t.Context(), batch))
	must(t, q.PublishBatch(t.Context(), nil))
	wantDepth(t, q, n, 0)

	seen := map[string]bool{}
	for len(seen) < n {
		leases, err := q.Lease(t.Context(), 100, patience)
		must(t, err)
		if len(leases) == 0 {
			t.Fatalf("only %d items", len(seen))
		}
		for _, l := range leases {
			if seen[l.ID()] || l.ID() != "item-"+string(l.Payload()) {
				t.Fatalf("item %s with payload %q", l.ID(), l.Payload())
			}
			seen[l.ID()] = true
			must(t, l.Ack(t.Context()))
		}
	}
	wantDepth(t, q, 0, 0)
}

func TestPublishBatchReportsRefusedItems(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{})
	must(t, publish(t.Context(), q, "c", "there", nil))
	batch := make([]queue.Work, 600)
	for i := range batch {
		batch[i] = queue.Work{Class: "c", ID: fmt.Sprint("new-", i)}
	}
	batch[5].ID = "there"
	batch[300].ID = ""
	batch[599].Payload = make([]byte, 2<<20)
	var refused *queue.BatchError
	if err := q.PublishBatch(t.Context(), batch); !errors.As(err, &refused) {
		t.Fatalf("error is %v, want a BatchError", err)
	}
	if len(refused.Refused) != 3 || refused.Total != 600 {
		t.Fatalf("%v, want 3 of 600", refused)
	}
	mustBe(t, refused.Refused[0].Err, queue.ErrDuplicate)
	mustBe(t, refused.Refused[1].Err, queue.ErrBadName)
	mustBe(t, refused, queue.ErrDuplicate)
	if ids := []string{refused.Refused[0].ID, refused.Refused[2].ID}; ids[0] != "there" || ids[1] != "new-599" {
		t.Fatalf("refused are %v", ids)
	}
	wantDepth(t, q, 598, 0)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := q.PublishBatch(ctx, []queue.Work{{Class: "c", ID: "late"}})
	mustBe(t, err, context.Canceled)
	if !errors.As(err, &refused) || len(refused.Refused) != 1 || refused.Refused[0].ID != "late" {
		t.Fatalf("error is %v, want one refused item", err)
	}
}

func TestTraceContextTravels(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
	q := newQueue(t, queue.Config{Tracer: tracer})
	ctx, span := tracer.Start(t.Context(), "shard")
	must(t, publish(ctx, q, "c", "1", nil))
	must(t, q.PublishBatch(ctx, []queue.Work{{Class: "c", ID: "2"}}))
	must(t, publish(t.Context(), q, "c", "of another trace", nil))
	span.End()

	publishers := map[trace.SpanID]bool{}
	for _, ended := range recorder.Ended() {
		if ended.Name() == "publish ddiff.work" && ended.Parent().SpanID() == span.SpanContext().SpanID() {
			publishers[ended.SpanContext().SpanID()] = true
		}
	}
	if len(publishers) != 2 {
		t.Fatalf("%d publish spans below the caller's, want 2", len(publishers))
	}
	for range 2 {
		l := lease(t, q)
		got := trace.SpanContextFromContext(l.Context(t.Context()))
		if got.TraceID() != span.SpanContext().TraceID() || !publishers[got.SpanID()] || !got.IsRemote() || !got.IsSampled() {
			t.Fatalf("item %s carries %+v, want trace %v", l.ID(), got, span.SpanContext().TraceID())
		}
	}
	l := lease(t, q)
	if got := trace.SpanContextFromContext(l.Context(t.Context())); got.TraceID() == span.SpanContext().TraceID() || !got.IsValid() {
		t.Fatalf("item %s carries %+v, want its own trace", l.ID(), got)
	}
}

func TestTraceContextWithoutTracer(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{})
	want := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
	})
	must(t, publish(trace.ContextWithSpanContext(t.Context(), want), q, "c", "1", nil))
	got := trace.SpanContextFromContext(lease(t, q).Context(t.Context()))
	if got.TraceID() != want.TraceID() || got.SpanID() != want.SpanID() {
		t.Fatalf("the item carries %+v, want %+v", got, want)
	}
}

package queue_test

import (
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

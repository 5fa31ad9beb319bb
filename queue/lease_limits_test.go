package queue_test

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"ddiff/queue"
)

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

// TestSettlingSpans: a call of Lease without items makes no span; the span of a burial has the reason, and that of a failed call
// its error.
func TestSettlingSpans(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	q := newQueue(t, queue.Config{Tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")})
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1"}, {Class: "c", ID: "2"}}))
	first, second := lease(t, q), lease(t, q)
	must(t, first.Ack(t.Context()))
	must(t, second.Bury(t.Context(), queue.Dead{ID: "2", Reason: "no light"}))
	mustBe(t, second.Retry(t.Context(), 0), queue.ErrSettled)
	spans := map[string]sdktrace.ReadOnlySpan{}
	for _, span := range recorder.Ended() {
		spans[span.Name()] = span
	}
	for name, want := range map[string]struct {
		reason string
		failed bool
	}{
		"publish ddiff.work": {}, "ack ddiff.work": {}, "bury ddiff.work": {reason: "no light"}, "retry ddiff.work": {failed: true},
	} {
		span := spans[name]
		if span == nil {
			t.Errorf("no span %s", name)
			continue
		}
		attributes := attribute.NewSet(span.Attributes()...)
		reason, found := attributes.Value("ddiff.queue.reason")
		if found != (want.reason != "") || found && reason.AsString() != want.reason || (span.Status().Code == codes.Error) != want.failed || attributes.HasValue("error.type") != want.failed {
			t.Errorf("span %s has the reason %q and the status %+v", name, reason.AsString(), span.Status())
		}
	}
}

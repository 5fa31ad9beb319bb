package queue_test

import (
	"testing"

	"go.opentelemetry.io/otel/trace"

	"ddiff/queue"
)

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

package telemetry

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Limits of a keeper: of traces at a time, of the spans of one trace, and of all spans.
const (
	maxTraces     = 1024
	maxTraceSpans = 256
	maxSpans      = 8192
)

// keeper passes sampled spans on. It holds the ended spans of a trace that is recorded and not sampled until the root
// span of the process ends, then passes them on if one of them has an error, and drops them otherwise. Above its limits it
// drops the spans of the oldest traces, and the last spans of a long trace.
type keeper struct {
	next []sdktrace.SpanProcessor

	mu     sync.Mutex
	traces map[trace.TraceID]*keptTrace
	oldest []trace.TraceID // in the order of their first spans; some have ended
	spans  int
}

// keptTrace is the trace of an item that is not sampled.
type keptTrace struct {
	spans  []sdktrace.ReadOnlySpan
	failed bool
}

func newKeeper(next []sdktrace.SpanProcessor) *keeper {
	return &keeper{next: next, traces: map[trace.TraceID]*keptTrace{}}
}

// OnStart implements sdktrace.SpanProcessor.
func (k *keeper) OnStart(ctx context.Context, span sdktrace.ReadWriteSpan) {
	for _, p := range k.next {
		p.OnStart(ctx, span)
	}
}

// OnEnd implements sdktrace.SpanProcessor.
func (k *keeper) OnEnd(span sdktrace.ReadOnlySpan) {
	if span.SpanContext().IsSampled() {
		k.pass(span)
		return
	}
	for _, s := range k.hold(span) {
		k.pass(keptSpan{s})
	}
}

func (k *keeper) pass(span sdktrace.ReadOnlySpan) {
	for _, p := range k.next {
		p.OnEnd(span)
	}
}

// hold adds an ended span to its trace, and returns the spans of the trace if it ends with an error. The root comes
// first: it is never dropped.
func (k *keeper) hold(span sdktrace.ReadOnlySpan) []sdktrace.ReadOnlySpan {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := span.SpanContext().TraceID()
	isRoot := !span.Parent().IsValid() || span.Parent().IsRemote()
	failed := span.Status().Code == codes.Error
	t := k.traces[id]
	if isRoot {
		k.forget(id)
		switch {
		case t == nil && failed:
			return []sdktrace.ReadOnlySpan{span}
		case t != nil && (failed || t.failed):
			return append([]sdktrace.ReadOnlySpan{span}, t.spans...)
		}
		return nil
	}
	if t == nil {
		t = &keptTrace{}
		k.traces[id] = t
		k.oldest = append(k.oldest, id)
	}
	t.failed = t.failed || failed
	if len(t.spans) < maxTraceSpans {
		t.spans = append(t.spans, span)
		k.spans++
	}
	for len(k.traces) > maxTraces || k.spans > maxSpans {
		k.forget(k.oldest[0])
		k.oldest = k.oldest[1:]
	}
	if len(k.oldest) > 2*maxTraces { // of traces that have ended
		live := make([]trace.TraceID, 0, len(k.traces))
		for _, id := range k.oldest {
			if k.traces[id] != nil {
				live = append(live, id)
			}
		}
		k.oldest = live
	}
	return nil
}

func (k *keeper) forget(id trace.TraceID) {
	if t := k.traces[id]; t != nil {
		k.spans -= len(t.spans)
		delete(k.traces, id)
	}
}

// Shutdown implements sdktrace.SpanProcessor. The processors shut down in order.
func (k *keeper) Shutdown(ctx context.Context) error {
	return k.each(func(p sdktrace.SpanProcessor) error { return p.Shutdown(ctx) })
}

// ForceFlush implements sdktrace.SpanProcessor.
func (k *keeper) ForceFlush(ctx context.Context) error {
	return k.each(func(p sdktrace.SpanProcessor) error { return p.ForceFlush(ctx) })
}

func (k *keeper) each(do func(sdktrace.SpanProcessor) error) error {
	var errs []error
	for _, p := range k.next {
		errs = append(errs, do(p))
	}
	return errors.Join(errs...)
}

// keptSpan is a span that was not sampled and is exported all the same.
type keptSpan struct{ sdktrace.ReadOnlySpan }

// SpanContext returns the context with the flag of a sampled span.
func (s keptSpan) SpanContext() trace.SpanContext {
	c := s.ReadOnlySpan.SpanContext()
	return c.WithTraceFlags(c.TraceFlags().WithSampled(true))
}

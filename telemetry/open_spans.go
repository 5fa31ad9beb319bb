package telemetry

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// openSpans has the recorded spans that have not ended. A process that exits during an operation ends them, so that the
// exported spans below them have their parents.
type openSpans struct {
	passive

	mu   sync.Mutex
	byID map[trace.SpanID]sdktrace.ReadWriteSpan
}

func newOpenSpans() *openSpans { return &openSpans{byID: map[trace.SpanID]sdktrace.ReadWriteSpan{}} }

// end ends all spans with an error. The roots come last: they decide about the export of their traces.
func (o *openSpans) end(reason string) {
	o.mu.Lock()
	var inner, roots []sdktrace.ReadWriteSpan
	for _, s := range o.byID {
		if s.Parent().IsValid() && !s.Parent().IsRemote() {
			inner = append(inner, s)
		} else {
			roots = append(roots, s)
		}
	}
	o.mu.Unlock()
	for _, s := range append(inner, roots...) {
		if s.Status().Code != codes.Error {
			s.SetStatus(codes.Error, reason)
			s.SetAttributes(ErrorKey.String("ended"))
		}
		s.End()
	}
}

// OnStart implements sdktrace.SpanProcessor.
func (o *openSpans) OnStart(_ context.Context, span sdktrace.ReadWriteSpan) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.byID[span.SpanContext().SpanID()] = span
}

// OnEnd implements sdktrace.SpanProcessor.
func (o *openSpans) OnEnd(span sdktrace.ReadOnlySpan) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.byID, span.SpanContext().SpanID())
}

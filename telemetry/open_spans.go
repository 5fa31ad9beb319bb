package telemetry

import (
	"context"
	"maps"
	"slices"
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

// end ends all spans with an error.
func (o *openSpans) end(reason string) {
	o.mu.Lock()
	open := slices.Collect(maps.Values(o.byID))
	o.mu.Unlock()
	for _, s := range open {
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

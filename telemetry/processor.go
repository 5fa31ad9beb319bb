package telemetry

import (
	"context"
	"maps"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// openSpans has the recorded spans that have not ended. A process that exits during an operation ends them, so that the
// exported spans below them have their parents. Each span gets the campaign, item, attempt, worker and device of its parent in this
// process, unless it has its own.
type openSpans struct {
	mu   sync.Mutex
	byID map[trace.SpanID]sdktrace.ReadWriteSpan
}

var _ sdktrace.SpanProcessor = (*openSpans)(nil)

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
func (o *openSpans) OnStart(ctx context.Context, span sdktrace.ReadWriteSpan) {
	o.mu.Lock()
	o.byID[span.SpanContext().SpanID()] = span
	o.mu.Unlock()
	parent, ok := trace.SpanFromContext(ctx).(sdktrace.ReadOnlySpan)
	if !ok || parent.SpanContext().SpanID() != span.Parent().SpanID() {
		return
	}
	own := map[attribute.Key]bool{}
	for _, a := range span.Attributes() {
		own[a.Key] = true
	}
	for _, a := range parent.Attributes() {
		switch a.Key {
		case SpanCampaignKey, SpanItemKey, SpanAttemptKey, SpanWorkerKey, SpanDeviceKey:
			if !own[a.Key] {
				span.SetAttributes(a)
			}
		}
	}
}

// OnEnd implements sdktrace.SpanProcessor.
func (o *openSpans) OnEnd(span sdktrace.ReadOnlySpan) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.byID, span.SpanContext().SpanID())
}

// Shutdown implements sdktrace.SpanProcessor.
func (o *openSpans) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdktrace.SpanProcessor.
func (o *openSpans) ForceFlush(context.Context) error { return nil }

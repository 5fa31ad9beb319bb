package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// inheritor gives each span the campaign, item, attempt, worker and device of its parent in this process, unless the span
// has its own.
type inheritor struct{ passive }

// OnStart implements sdktrace.SpanProcessor.
func (inheritor) OnStart(ctx context.Context, span sdktrace.ReadWriteSpan) {
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

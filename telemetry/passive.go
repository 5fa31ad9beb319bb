package telemetry

import (
	"context"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// passive is a span processor that does nothing, for processors that need only some of the methods.
type passive struct{}

var _ sdktrace.SpanProcessor = passive{}

// OnStart implements sdktrace.SpanProcessor.
func (passive) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor.
func (passive) OnEnd(sdktrace.ReadOnlySpan) {}

// Shutdown implements sdktrace.SpanProcessor.
func (passive) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdktrace.SpanProcessor.
func (passive) ForceFlush(context.Context) error { return nil }

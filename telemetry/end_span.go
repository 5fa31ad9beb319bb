package telemetry

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// EndSpan ends a span. An error sets the status and error.type, and is an event: class is a short name of its kind, by default the type of
// the error in Go. A cancelled operation, such as one that a draining process interrupts, is no error.
func EndSpan(span trace.Span, err error, class string) {
	if err != nil && !errors.Is(err, context.Canceled) {
		kind := semconv.ErrorType(err)
		if class != "" {
			kind = ErrorKey.String(class)
		}
		span.RecordError(err)
		span.SetAttributes(kind)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

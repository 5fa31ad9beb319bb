package queue

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// span starts the span of an operation of a kind, with the attributes of the semantic conventions for messaging.
func (q *Queue) span(ctx context.Context, operation, subject string, kind trace.SpanKind,
	attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	operationType := semconv.MessagingOperationTypeSettle
	if kind == trace.SpanKindProducer {
		operationType = semconv.MessagingOperationTypeSend
	}
	return q.cfg.Tracer.Start(ctx, operation+" "+subject, trace.WithSpanKind(kind),
		trace.WithAttributes(q.attributes(operation, subject, operationType)...), trace.WithAttributes(attributes...))
}

// attributes returns the attributes of every span of an operation.
func (q *Queue) attributes(operation, subject string, operationType attribute.KeyValue) []attribute.KeyValue {
	return []attribute.KeyValue{
		semconv.MessagingSystemKey.String("nats"), semconv.MessagingOperationName(operation), operationType,
		semconv.MessagingDestinationName(subject), semconv.MessagingConsumerGroupName(q.cfg.Campaign),
	}
}

// Attributes returns the attributes of the span in which a worker processes the item.
func (l *Lease) Attributes() []attribute.KeyValue {
	return append(l.q.attributes("process", workSubject, semconv.MessagingOperationTypeProcess), semconv.MessagingMessageID(l.ID()))
}

// endSpan ends a span. An error sets error.type to its class; a cancelled call, such as that of a draining process, is no error.
func endSpan(span trace.Span, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		span.RecordError(err)
		span.SetAttributes(semconv.ErrorTypeKey.String(errorClass(err)))
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// errorClass names the kind of an error.
func errorClass(err error) string {
	for _, c := range []struct {
		is   error
		name string
	}{
		{ErrUnavailable, "unavailable"}, {ErrNotReady, "not_ready"}, {ErrSettled, "settled"}, {ErrFull, "space"}, {ErrAccess, "permission"},
		{ErrTooLarge, "too_large"}, {ErrClosed, "closed"}, {ErrDuplicate, "duplicate"},
	} {
		if errors.Is(err, c.is) {
			return c.name
		}
	}
	return "other"
}

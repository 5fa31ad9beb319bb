package queue

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Span attributes, by the semantic conventions for messaging.
const (
	attributeSystem    = attribute.Key("messaging.system")
	attributeOperation = attribute.Key("messaging.operation.name")
	attributeSubject   = attribute.Key("messaging.destination.name")
	attributeGroup     = attribute.Key("messaging.consumer.group.name")
	attributeID        = attribute.Key("messaging.message.id")
	attributeCount     = attribute.Key("messaging.batch.message_count")
	attributeAttempt   = attribute.Key("ddiff.queue.attempt")
	attributeReason    = attribute.Key("ddiff.queue.reason")
)

// span starts the span "<operation> <subject>".
func (q *Queue) span(ctx context.Context, operation, subject string, kind trace.SpanKind,
	attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	attributes = append(attributes,
		attributeSystem.String("nats"),
		attributeOperation.String(operation),
		attributeSubject.String(subject),
		attributeGroup.String(q.cfg.Campaign))
	return q.cfg.Tracer.Start(ctx, operation+" "+subject, trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
}

// endSpan ends a span with the error of its operation.
func endSpan(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

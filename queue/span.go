package queue

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Span attributes, by the semantic conventions for messaging.
const (
	attributeSystem    = attribute.Key("messaging.system")
	attributeOperation = attribute.Key("messaging.operation.name")
	attributeType      = attribute.Key("messaging.operation.type")
	attributeSubject   = attribute.Key("messaging.destination.name")
	attributeGroup     = attribute.Key("messaging.consumer.group.name")
	attributeID        = attribute.Key("messaging.message.id")
	attributeCount     = attribute.Key("messaging.batch.message_count")
	attributeAttempt   = attribute.Key("ddiff.queue.attempt")
	attributeReason    = attribute.Key("ddiff.queue.reason")
)

func (q *Queue) span(ctx context.Context, operation, subject string, kind trace.SpanKind,
	attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	return q.cfg.Tracer.Start(ctx, operation+" "+subject, trace.WithSpanKind(kind),
		trace.WithAttributes(q.attributes(operation, subject)...), trace.WithAttributes(attributes...))
}

// attributes returns the attributes of every span of an operation.
func (q *Queue) attributes(operation, subject string) []attribute.KeyValue {
	return []attribute.KeyValue{
		attributeSystem.String("nats"), attributeOperation.String(operation), attributeType.String(operationType(operation)),
		attributeSubject.String(subject), attributeGroup.String(q.cfg.Campaign),
	}
}

// Attributes returns the attributes of the span in which a worker processes the item.
func (l *Lease) Attributes() []attribute.KeyValue {
	return append(l.q.attributes("process", workSubject), attributeID.String(l.ID()))
}

// operationType returns the type of an operation in the semantic conventions.
func operationType(operation string) string {
	switch operation {
	case "publish":
		return "send"
	case "process":
		return "process"
	}
	return "settle"
}

// endSpan ends a span. An error sets error.type to its class; a cancelled call, such as that of a draining process, is no error.
func endSpan(span trace.Span, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		span.RecordError(err)
		span.SetAttributes(attribute.String("error.type", errorClass(err)))
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

package storage

import (
	"context"
	"errors"
	"iter"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// AttributeKey is the span attribute of an object's key, or of the prefix of a listing.
const AttributeKey = attribute.Key("ddiff.storage.key")

// The attributes of calls of S3, by the semantic conventions.
const (
	attributeSystem = attribute.Key("rpc.system.name")
	attributeBucket = attribute.Key("aws.s3.bucket")
	attributeS3Key  = attribute.Key("aws.s3.key")
	attributeError  = attribute.Key("error.type")
)

// Observer receives one report for each call of a store.
type Observer interface {
	// Call reports the operation ("get", "put", "create", "delete", "list", "stat"), the class of its error, see Class, its
	// duration, and the bytes of objects that it read and wrote.
	Call(ctx context.Context, operation, failure string, took time.Duration, read, written int)
}

// Traced wraps a store and records one span per call, named "storage.get" and so on, with the key. ErrNotFound and
// ErrExists do not mark a span as failed.
type Traced struct {
	around
	tracer   trace.Tracer
	observer Observer
	bucket   string
}

var _ Store = (*Traced)(nil)

// NewTraced wraps store; spans go to tracer. A call is also reported to observer, unless it is nil. The spans have the attributes of S3
// if bucket, the name of the store's bucket, is not empty.
func NewTraced(store Store, tracer trace.Tracer, observer Observer, bucket string) *Traced {
	s := &Traced{tracer: tracer, observer: observer, bucket: bucket}
	s.around = around{store, s.do}
	return s
}

// Class returns the class of an error of a store: "" for none, ErrNotFound and ErrExists, which are answers; else
// "unavailable", "space", "permission", "cancelled" or "other".
func Class(err error) string {
	switch {
	case err == nil, errors.Is(err, ErrNotFound), errors.Is(err, ErrExists):
		return ""
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return "unavailable"
	case errors.Is(err, ErrNoSpace):
		return "space"
	case errors.Is(err, ErrReadOnly), errors.Is(err, ErrAccess):
		return "permission"
	}
	return "other"
}

// observed runs a call within a span. call returns the bytes of objects that it read and wrote.
func (s *Traced) observed(ctx context.Context, name, key string, call func(ctx context.Context) (read, written int64, err error)) error {
	begin := time.Now()
	ctx, span := s.tracer.Start(ctx, "storage."+name, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(AttributeKey.String(key)))
	if s.bucket != "" {
		span.SetAttributes(attributeSystem.String("aws-api"), attributeBucket.String(s.bucket), attributeS3Key.String(key))
	}
	read, written, err := call(ctx)
	class := Class(err)
	switch class {
	case "", "cancelled": // a draining process interrupts calls
	default:
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
		span.SetAttributes(attributeError.String(class))
	}
	span.End()
	if err != nil {
		read, written = 0, 0
	}
	if s.observer != nil {
		s.observer.Call(ctx, name, class, time.Since(begin), int(read), int(written))
	}
	return err
}

func (s *Traced) do(ctx context.Context, o *operation) error {
	return s.observed(ctx, o.name, o.key, func(ctx context.Context) (read, written int64, err error) {
		err = o.run(ctx, o.key)
		if o.name == "get" {
			return o.size, 0, err
		}
		return 0, o.size, err
	})
}

// List implements Store. The span covers the iteration.
func (s *Traced) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		_ = s.observed(ctx, "list", prefix, func(ctx context.Context) (_, _ int64, last error) {
			for info, err := range s.store.List(ctx, prefix) {
				if last = err; !yield(info, err) {
					break
				}
			}
			return 0, 0, last
		}) // the iteration has yielded the error
	}
}

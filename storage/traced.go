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

// Span attributes.
const (
	// AttributeKey is the object's key, or the prefix of a listing.
	AttributeKey = attribute.Key("ddiff.storage.key")
	// AttributeSize is the number of bytes transferred.
	AttributeSize = attribute.Key("ddiff.storage.size")
	// AttributeCount is the number of listed objects.
	AttributeCount = attribute.Key("ddiff.storage.count")
	// AttributeFound is false if Get or Stat found no object.
	AttributeFound = attribute.Key("ddiff.storage.found")
	// AttributeCreated is false if Create failed, as with an existing object.
	AttributeCreated = attribute.Key("ddiff.storage.created")
)

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

// Traced wraps a store and records one span per call, named "storage.get" and so on, with key and size. ErrNotFound
// and ErrExists do not mark a span as failed.
type Traced struct {
	store    Store
	tracer   trace.Tracer
	observer Observer
	bucket   string
}

var _ Store = (*Traced)(nil)

// TracedOption changes a Traced.
type TracedOption func(*Traced)

// Observed also reports each call to o.
func Observed(o Observer) TracedOption { return func(s *Traced) { s.observer = o } }

// InBucket adds the attributes of S3 to the spans, for a store in this bucket. An empty name adds none.
func InBucket(name string) TracedOption { return func(s *Traced) { s.bucket = name } }

// NewTraced wraps store; spans go to tracer.
func NewTraced(store Store, tracer trace.Tracer, options ...TracedOption) *Traced {
	s := &Traced{store: store, tracer: tracer}
	for _, o := range options {
		o(s)
	}
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

type call struct {
	trace.Span
	store     *Traced
	ctx       context.Context
	operation string
	begin     time.Time
}

// start begins a call. Its context has the span.
func (s *Traced) start(ctx context.Context, operation, key string) call {
	c := call{store: s, operation: operation, begin: time.Now()}
	c.ctx, c.Span = s.tracer.Start(ctx, "storage."+operation, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(AttributeKey.String(key)))
	if s.bucket != "" {
		c.SetAttributes(attributeSystem.String("aws-api"), attributeBucket.String(s.bucket), attributeS3Key.String(key))
	}
	return c
}

// end ends a call that read and wrote so many bytes of objects.
func (c call) end(err error, read, written int) {
	class := Class(err)
	if class != "" {
		c.RecordError(err)
		c.SetStatus(codes.Error, err.Error())
		c.SetAttributes(attributeError.String(class))
		read, written = 0, 0
	} else if err != nil {
		read, written = 0, 0
	}
	c.End()
	if c.store.observer != nil {
		c.store.observer.Call(c.ctx, c.operation, class, time.Since(c.begin), read, written)
	}
}

// Get implements Store.
func (s *Traced) Get(ctx context.Context, key string) ([]byte, error) {
	c := s.start(ctx, "get", key)
	data, err := s.store.Get(c.ctx, key)
	c.SetAttributes(AttributeSize.Int(len(data)), AttributeFound.Bool(!errors.Is(err, ErrNotFound)))
	c.end(err, len(data), 0)
	return data, err
}

// Put implements Store.
func (s *Traced) Put(ctx context.Context, key string, data []byte) error {
	c := s.start(ctx, "put", key)
	c.SetAttributes(AttributeSize.Int(len(data)))
	err := s.store.Put(c.ctx, key, data)
	c.end(err, 0, len(data))
	return err
}

// Create implements Store.
func (s *Traced) Create(ctx context.Context, key string, data []byte) error {
	c := s.start(ctx, "create", key)
	err := s.store.Create(c.ctx, key, data)
	c.SetAttributes(AttributeSize.Int(len(data)), AttributeCreated.Bool(err == nil))
	c.end(err, 0, len(data))
	return err
}

// Delete implements Store.
func (s *Traced) Delete(ctx context.Context, key string) error {
	c := s.start(ctx, "delete", key)
	err := s.store.Delete(c.ctx, key)
	c.end(err, 0, 0)
	return err
}

// List implements Store. The span covers the iteration.
func (s *Traced) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		c := s.start(ctx, "list", prefix)
		count := 0
		var last error
		defer func() {
			c.SetAttributes(AttributeCount.Int(count))
			c.end(last, 0, 0)
		}()
		for info, err := range s.store.List(c.ctx, prefix) {
			if last = err; err == nil {
				count++
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// Stat implements Store.
func (s *Traced) Stat(ctx context.Context, key string) (Info, error) {
	c := s.start(ctx, "stat", key)
	info, err := s.store.Stat(c.ctx, key)
	c.SetAttributes(AttributeSize.Int64(info.Size), AttributeFound.Bool(!errors.Is(err, ErrNotFound)))
	c.end(err, 0, 0)
	return info, err
}

package storage

import (
	"context"
	"errors"
	"iter"

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

// Traced wraps a store and records one span per call, named "storage.get" and so on, with key and size. ErrNotFound
// and ErrExists do not mark a span as failed.
type Traced struct {
	store  Store
	tracer trace.Tracer
}

var _ Store = (*Traced)(nil)

// NewTraced wraps store; spans go to tracer.
func NewTraced(store Store, tracer trace.Tracer) *Traced {
	return &Traced{store: store, tracer: tracer}
}

// Get implements Store.
func (s *Traced) Get(ctx context.Context, key string) ([]byte, error) {
	ctx, span := s.start(ctx, "storage.get", key)
	data, err := s.store.Get(ctx, key)
	span.SetAttributes(AttributeSize.Int(len(data)), AttributeFound.Bool(!errors.Is(err, ErrNotFound)))
	end(span, err)
	return data, err
}

// Put implements Store.
func (s *Traced) Put(ctx context.Context, key string, data []byte) error {
	ctx, span := s.start(ctx, "storage.put", key)
	span.SetAttributes(AttributeSize.Int(len(data)))
	err := s.store.Put(ctx, key, data)
	end(span, err)
	return err
}

// Create implements Store.
func (s *Traced) Create(ctx context.Context, key string, data []byte) error {
	ctx, span := s.start(ctx, "storage.create", key)
	err := s.store.Create(ctx, key, data)
	span.SetAttributes(AttributeSize.Int(len(data)), AttributeCreated.Bool(err == nil))
	end(span, err)
	return err
}

// Delete implements Store.
func (s *Traced) Delete(ctx context.Context, key string) error {
	ctx, span := s.start(ctx, "storage.delete", key)
	err := s.store.Delete(ctx, key)
	end(span, err)
	return err
}

// List implements Store. The span covers the iteration.
func (s *Traced) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		ctx, span := s.start(ctx, "storage.list", prefix)
		count := 0
		var last error
		defer func() {
			span.SetAttributes(AttributeCount.Int(count))
			end(span, last)
		}()
		for info, err := range s.store.List(ctx, prefix) {
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
	ctx, span := s.start(ctx, "storage.stat", key)
	info, err := s.store.Stat(ctx, key)
	span.SetAttributes(AttributeSize.Int64(info.Size), AttributeFound.Bool(!errors.Is(err, ErrNotFound)))
	end(span, err)
	return info, err
}

func (s *Traced) start(ctx context.Context, name, key string) (context.Context, trace.Span) {
	return s.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(AttributeKey.String(key)))
}

func end(span trace.Span, err error) {
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrExists) {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

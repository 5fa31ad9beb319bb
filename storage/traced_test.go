package storage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace/noop"

	"ddiff/storage"
)

func TestTracedContract(t *testing.T) {
	t.Parallel()
	testContract(t, func(t *testing.T) storage.Store {
		return storage.NewTraced(newDir(t, t.TempDir()), noop.NewTracerProvider().Tracer("test"), nil, "")
	})
}

func TestTracedSpans(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	var got calls
	s := storage.NewTraced(newDir(t, t.TempDir()), provider.Tracer("test"), &got, "results")
	ctx := t.Context()

	must(t, s.Put(ctx, "a/b", []byte("12345")))
	if _, err := s.Get(ctx, "a/b"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(ctx, "none"); !errors.Is(err, storage.ErrNotFound) {
		t.Fatal(err)
	}
	if err := s.Create(ctx, "a/b", []byte("1")); !errors.Is(err, storage.ErrExists) {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, "../a"); !errors.Is(err, storage.ErrBadKey) {
		t.Fatal(err)
	}
	for _, err := range s.List(ctx, "a/") {
		must(t, err)
		break
	}
	if _, err := s.Stat(ctx, "a/b"); err != nil {
		t.Fatal(err)
	}

	want := []struct {
		name, key string
		status    codes.Code
	}{
		{"storage.put", "a/b", codes.Unset},
		{"storage.get", "a/b", codes.Unset},
		{"storage.get", "none", codes.Unset},
		{"storage.create", "a/b", codes.Unset},
		{"storage.delete", "../a", codes.Error},
		{"storage.list", "a/", codes.Unset},
		{"storage.stat", "a/b", codes.Unset},
	}
	spans := recorder.Ended()
	if len(spans) != len(want) {
		t.Fatalf("%d spans, want %d", len(spans), len(want))
	}
	for i, span := range spans {
		w := want[i]
		attributes := attribute.NewSet(span.Attributes()...)
		if key, _ := attributes.Value(storage.AttributeKey); span.Name() != w.name || key.AsString() != w.key {
			t.Errorf("span %d is %s of %q, want %s of %q", i, span.Name(), key.AsString(), w.name, w.key)
		}
		if bucket, _ := attributes.Value("aws.s3.bucket"); bucket.AsString() != "results" {
			t.Errorf("span %s has the attributes %v", w.name, span.Attributes())
		}
		if span.Status().Code != w.status || attributes.HasValue("error.type") != (w.status == codes.Error) {
			t.Errorf("span %s: status %v, want %v", w.name, span.Status().Code, w.status)
		}
	} // An object that is missing or exists is no error.
	reports := calls{`put "" 0 5`, `get "" 5 0`, `get "" 0 0`, `create "" 0 0`, `delete "other" 0 0`, `list "" 0 0`, `stat "" 0 0`}
	if !slices.Equal(got, reports) {
		t.Errorf("reports\n%q, want\n%q", got, reports)
	}
}

// calls records the reports of a store.
type calls []string

func (c *calls) Call(_ context.Context, operation, failure string, took time.Duration, read, written int) {
	if took < 0 {
		*c = append(*c, "negative")
	}
	*c = append(*c, fmt.Sprintf("%s %q %d %d", operation, failure, read, written))
}

func TestClass(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""}, {storage.ErrNotFound, ""}, {storage.ErrExists, ""}, {storage.ErrUnavailable, "unavailable"},
		{context.DeadlineExceeded, "unavailable"}, {context.Canceled, "cancelled"}, {storage.ErrNoSpace, "space"},
		{storage.ErrReadOnly, "permission"}, {storage.ErrAccess, "permission"}, {errors.New("secret-key-4711"), "other"},
	} {
		if got := storage.Class(fmt.Errorf("get a: %w", errors.Join(c.err))); c.err != nil && got != c.want {
			t.Errorf("%v is %q, want %q", c.err, got, c.want)
		}
	}
	if got := storage.Class(nil); got != "" {
		t.Errorf("no error is %q", got)
	}
}

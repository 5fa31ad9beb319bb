package storage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"ddiff/storage"
)

// calls records the reports of a store.
type calls []string

func (c *calls) Call(_ context.Context, operation, failure string, took time.Duration, read, written int) {
	if took < 0 {
		*c = append(*c, "negative")
	}
	*c = append(*c, fmt.Sprintf("%s %q %d %d", operation, failure, read, written))
}

// TestObserved: each call is reported once, with the bytes that were transferred; an object that is missing or exists is no error.
func TestObserved(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	var got calls
	s := storage.NewTraced(newDir(t, t.TempDir()), sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test"),
		&got, "results")
	ctx := t.Context()
	_ = s.Create(ctx, "a", []byte("12345"))
	_ = s.Create(ctx, "a", []byte("12345"))
	_, _ = s.Get(ctx, "a")
	_, _ = s.Get(ctx, "b")
	_ = s.Put(ctx, "../a", []byte("123"))
	_, _ = s.Stat(ctx, "a")
	for _, err := range s.List(ctx, "") {
		if err != nil {
			t.Error(err)
		}
		break
	}
	want := calls{`create "" 0 5`, `create "" 0 0`, `get "" 5 0`, `get "" 0 0`, `put "other" 0 0`, `stat "" 0 0`, `list "" 0 0`}
	if !slices.Equal(got, want) {
		t.Errorf("reports\n%q, want\n%q", got, want)
	}
	for _, span := range recorder.Ended() {
		set := attribute.NewSet(span.Attributes()...)
		if bucket, _ := set.Value("aws.s3.bucket"); bucket.AsString() != "results" {
			t.Errorf("span %s has the attributes %v", span.Name(), span.Attributes())
		}
	}
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

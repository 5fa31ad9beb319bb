package telemetry

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.opentelemetry.io/otel/codes"
)

// TestEndSpan: an error has a type, and an interrupted operation is no error.
func TestEndSpan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, class, want string
		err               error
	}{
		{"success", "done", "", nil},
		{"with a class", "space", "space", errors.New("full")},
		{"without a class", "", "*errors.errorString", fmt.Errorf("read: %w", errors.New("gone"))},
		{"interrupted", "retried", "", fmt.Errorf("read: %w", context.Canceled)},
	} {
		tracer, exported := tracing(t, nil)
		_, span := tracer.Start(t.Context(), c.name)
		EndSpan(span, c.err, c.class)
		got := ""
		spans := exported()
		for _, a := range spans[0].Attributes {
			if a.Key == ErrorKey {
				got = a.Value.AsString()
			}
		}
		if got != c.want || (spans[0].Status.Code == codes.Error) != (c.want != "") || len(spans[0].Events) != min(len(c.want), 1) {
			t.Errorf("%s: error.type %q, want %q; status %v, events %v", c.name, got, c.want, spans[0].Status, spans[0].Events)
		}
	}
}

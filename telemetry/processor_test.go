package telemetry

import (
	"path/filepath"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

// TestEndSpans: a process that exits in the middle of an operation exports every parent of a span that it has exported, with the
// reason. A span with an error keeps the error's reason.
func TestEndSpans(t *testing.T) {
	for reason, end := range map[string]func(tel *Telemetry){
		"the grace period expired": func(tel *Telemetry) { tel.EndSpans("the grace period expired") },
		"the process ended":        func(*Telemetry) {},
	} {
		t.Run(reason, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "spans.jsonl")
			setOTel(t, nil)
			tel := start(t, Config{TraceFile: path})
			ctx, _ := tel.Tracer("test").Start(t.Context(), "process item", trace.WithAttributes(SpanAttemptKey.Int(1)))
			ctx, _ = tel.Tracer("test").Start(ctx, "restore")
			_, steps := tel.Tracer("test").Start(ctx, "steps")
			steps.End()
			end(tel)
			shutDown(t, tel)
			spans, _ := readSpans(t, path)
			ids := map[string]bool{"": true}
			for _, s := range spans {
				ids[s.SpanID] = true
			}
			for _, s := range spans {
				if !ids[s.ParentSpanID] {
					t.Errorf("the parent of %s is not exported", s.Name)
				}
				if s.Name != "steps" && s.Status.Message != reason {
					t.Errorf("%s ends with %q, want %q", s.Name, s.Status.Message, reason)
				}
			}
			if len(spans) != 3 {
				t.Errorf("%d spans, want 3", len(spans))
			}
		})
	}
}

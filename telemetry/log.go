package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

func newLogger(cfg Config) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.LogLevel}
	var base slog.Handler
	if cfg.LogFormat == LogJSON {
		base = slog.NewJSONHandler(cfg.LogOutput, options)
	} else {
		base = slog.NewTextHandler(cfg.LogOutput, options)
	}
	return slog.New(&spanHandler{root: base, current: base})
}

// spanHandler adds trace_id and span_id to records whose context holds a span. Both are at the top level of a record
// even when the logger has open groups, so that one query finds them: root is the handler without the logger's groups
// and attributes, and steps turn it into current.
type spanHandler struct {
	root    slog.Handler
	current slog.Handler
	steps   []func(slog.Handler) slog.Handler
}

var _ slog.Handler = (*spanHandler)(nil)

func (h *spanHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.current.Enabled(ctx, level)
}

func (h *spanHandler) Handle(ctx context.Context, record slog.Record) error {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return h.current.Handle(ctx, record)
	}
	handler := h.root.WithAttrs([]slog.Attr{
		slog.String("trace_id", span.TraceID().String()),
		slog.String("span_id", span.SpanID().String()),
	})
	for _, step := range h.steps {
		handler = step(handler)
	}
	return handler.Handle(ctx, record)
}

func (h *spanHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with(func(inner slog.Handler) slog.Handler { return inner.WithAttrs(attrs) })
}

func (h *spanHandler) WithGroup(name string) slog.Handler {
	return h.with(func(inner slog.Handler) slog.Handler { return inner.WithGroup(name) })
}

func (h *spanHandler) with(step func(slog.Handler) slog.Handler) slog.Handler {
	steps := make([]func(slog.Handler) slog.Handler, 0, len(h.steps)+1)
	steps = append(append(steps, h.steps...), step)
	return &spanHandler{root: h.root, current: step(h.current), steps: steps}
}

package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// NewLogger returns the [Telemetry.Logger] of a configuration, whose LogOutput is set, for processes without traces and metrics.
func NewLogger(cfg Config) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.LogLevel}
	var base slog.Handler
	if cfg.LogFormat == LogJSON {
		base = slog.NewJSONHandler(cfg.LogOutput, options)
	} else {
		base = slog.NewTextHandler(cfg.LogOutput, options)
	}
	return slog.New(spanHandler{base})
}

// spanHandler adds trace_id and span_id to records whose context holds a span.
type spanHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h spanHandler) Handle(ctx context.Context, record slog.Record) error {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return h.Handler.Handle(ctx, record)
	}
	return h.Handler.WithAttrs([]slog.Attr{
		slog.String("trace_id", span.TraceID().String()),
		slog.String("span_id", span.SpanID().String()),
	}).Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (h spanHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return spanHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h spanHandler) WithGroup(name string) slog.Handler {
	return spanHandler{h.Handler.WithGroup(name)}
}

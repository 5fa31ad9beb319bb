package coordinator

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"ddiff/internal/coordinator/shard"
	"ddiff/internal/record"
	"ddiff/storage"
	"ddiff/telemetry"
)

// traceOf returns the root span of a campaign's trace. endTrace records it at the end of the campaign; the coordinators that lead
// until then add spans below it.
func traceOf(c *record.Campaign) trace.SpanContext {
	return telemetry.CampaignSpan(c.ID, c.Submitted)
}

// traced returns ctx with the campaign's trace, unless it has a span.
func (r *runner) traced(ctx context.Context) context.Context {
	if trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, traceOf(r.rec))
}

// startSpan starts a span of the campaign.
func (r *runner) startSpan(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	return r.s.cfg.Tracer.Start(r.traced(ctx), name, append(options, trace.WithAttributes(telemetry.SpanCampaignKey.String(r.id)))...)
}

// startWindowSpan starts a span for the work on one window.
func (r *runner) startWindowSpan(ctx context.Context, name string, w *shard.Window, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	return r.startSpan(ctx, name, append(options,
		trace.WithAttributes(attribute.Int("ddiff.window", w.Number), attribute.Int("ddiff.items", w.Header.Items)))...)
}

// endTrace records the root span of an ended campaign, from its submission until now. A campaign that was resumed has its root
// from the first end; endTrace adds a span "end" below it.
func (r *runner) endTrace(ctx context.Context, p record.Phase, again bool) {
	attributes := trace.WithAttributes(attribute.String("ddiff.phase", string(p)), attribute.Int("ddiff.items", max(r.status.last.Counts.Items, r.outcomes.ledger.Items())))
	var span trace.Span
	if again {
		_, span = r.startSpan(trace.ContextWithRemoteSpanContext(ctx, traceOf(r.rec)), "end", attributes)
	} else {
		_, span = r.startSpan(telemetry.ContextWithIdentity(ctx, traceOf(r.rec)), "campaign", attributes,
			trace.WithNewRoot(), trace.WithTimestamp(r.rec.Submitted))
	}
	if p == record.PhaseRejected {
		span.SetStatus(codes.Error, r.rec.Reason)
		span.SetAttributes(telemetry.ErrorKey.String(string(p)))
	}
	span.End(trace.WithTimestamp(r.s.cfg.Now()))
}

func endSpan(span trace.Span, err error) {
	telemetry.EndSpan(span, err, storage.Class(err))
}

package telemetry

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// tracing returns a tracer with the sampler of the variables, as Start has it, and the spans that are exported.
func tracing(t *testing.T, variables map[string]string) (trace.Tracer, func() tracetest.SpanStubs) {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSampler(newSampler(func(name string) string { return variables[name] })), sdktrace.WithIDGenerator(identities{}),
		sdktrace.WithSpanProcessor(&openSpans{byID: map[trace.SpanID]sdktrace.ReadWriteSpan{}}),
		sdktrace.WithBatcher(exporter))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return provider.Tracer("test"), func() tracetest.SpanStubs {
		must(t, provider.ForceFlush(t.Context()))
		return exporter.GetSpans()
	}
}

// attempt records the spans of one attempt at an item: a root, a stage and a call in the stage, which fails with err.
func attempt(ctx context.Context, tracer trace.Tracer, item string, number int, err error) {
	ctx, root := tracer.Start(ctx, "process item", trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		SpanCampaignKey.String("c"), SpanItemKey.String(item), SpanAttemptKey.Int(number), SpanWorkerKey.String("w"), SpanDeviceKey.String("cpu")))
	ctx, stage := tracer.Start(ctx, "fetch")
	_, call := tracer.Start(ctx, "storage.get", trace.WithSpanKind(trace.SpanKindClient))
	if err != nil {
		call.SetStatus(codes.Error, err.Error())
	}
	call.End()
	stage.End()
	root.End()
}

func never() map[string]string {
	return map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}
}

// checkParents reports spans whose parent is neither exported nor remote, and spans that a backend would drop.
func checkParents(t *testing.T, spans tracetest.SpanStubs) {
	t.Helper()
	ids := map[trace.SpanID]bool{}
	for _, s := range spans {
		ids[s.SpanContext.SpanID()] = true
		if !s.SpanContext.IsSampled() {
			t.Errorf("span %s is exported without the flag of a sampled span", s.Name)
		}
	}
	for _, s := range spans {
		if s.Parent.IsValid() && !s.Parent.IsRemote() && !ids[s.Parent.SpanID()] {
			t.Errorf("span %s has no parent", s.Name)
		}
	}
}

// TestRetriesAreSampled: at the ratio 0, first attempts are not exported, and later ones and campaigns are, whole.
func TestRetriesAreSampled(t *testing.T) {
	t.Parallel()
	tracer, exported := tracing(t, never())
	attempt(t.Context(), tracer, "first", 1, errors.New("no such object"))
	attempt(t.Context(), tracer, "again", 2, nil)
	_, campaign := tracer.Start(t.Context(), "open", trace.WithAttributes(SpanCampaignKey.String("c")))
	campaign.End()
	_, lease := tracer.Start(t.Context(), "lease ddiff.work", trace.WithSpanKind(trace.SpanKindClient))
	lease.End()
	spans := exported()
	checkParents(t, spans)
	got := map[string]int{}
	for _, s := range spans {
		item := s.Name
		for _, a := range s.Attributes {
			if a.Key == SpanItemKey {
				item = a.Value.AsString()
			}
		}
		got[item]++
	}
	if want := map[string]int{"again": 3, "open": 1}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("exported %v, want %v", got, want)
	}
}

func TestSamplers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		variables map[string]string
		spans     int // of two first attempts
	}{
		"default":         {nil, 6},
		"always on":       {map[string]string{"OTEL_TRACES_SAMPLER": "always_on"}, 6},
		"always off":      {map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_always_off"}, 0},
		"ratio 0":         {never(), 0},
		"ratio 1":         {map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "1"}, 6},
		"no ratio":        {map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio"}, 6},
		"invalid ratio":   {map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "NaN"}, 6},
		"invalid sampler": {map[string]string{"OTEL_TRACES_SAMPLER": "sometimes"}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tracer, exported := tracing(t, c.variables)
			attempt(t.Context(), tracer, "good", 1, nil)
			attempt(t.Context(), tracer, "bad", 1, errors.New("no such object"))
			_, single := tracer.Start(t.Context(), "storage.stat", trace.WithSpanKind(trace.SpanKindClient))
			single.End() // left out
			if spans := exported(); len(spans) != c.spans {
				t.Errorf("%d spans, want %d", len(spans), c.spans)
			}
		})
	}
}

// TestAttributesAreInherited: every span of an attempt has campaign, item, attempt, worker and device.
func TestAttributesAreInherited(t *testing.T) {
	t.Parallel()
	tracer, exported := tracing(t, nil)
	attempt(t.Context(), tracer, "item", 1, nil)
	spans := exported()
	if len(spans) != 3 {
		t.Fatalf("%d spans", len(spans))
	}
	for _, s := range spans {
		got := map[string]string{}
		for _, a := range s.Attributes {
			if _, twice := got[string(a.Key)]; twice {
				t.Errorf("span %s has %s twice", s.Name, a.Key)
			}
			got[string(a.Key)] = a.Value.String()
		}
		want := map[string]string{"ddiff.campaign": "c", "ddiff.item.id": "item", "ddiff.attempt": "1", "ddiff.worker": "w", "ddiff.device": "cpu"}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("span %s has %v, want %v", s.Name, got, want)
		}
	}
}

// TestCampaignSpan: the trace of a campaign follows from its id and submission, and its root has the ids.
func TestCampaignSpan(t *testing.T) {
	t.Parallel()
	tracer, exported := tracing(t, never())
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	c := CampaignSpan("demo-1", at)
	if !c.IsValid() || !c.IsSampled() || !CampaignSpan("demo-1", at).Equal(c) ||
		CampaignSpan("demo-2", at).TraceID() == c.TraceID() || CampaignSpan("demo-1", at.Add(1e9)).TraceID() == c.TraceID() {
		t.Fatalf("campaign has the span %v", c)
	}
	_, child := tracer.Start(trace.ContextWithRemoteSpanContext(t.Context(), c), "shard")
	child.End()
	_, root := tracer.Start(ContextWithIdentity(t.Context(), c), "campaign", trace.WithNewRoot())
	root.End()
	_, other := tracer.Start(t.Context(), "other")
	other.End()
	spans := exported()
	if len(spans) != 3 || spans[0].SpanContext.TraceID() != c.TraceID() || spans[0].Parent.SpanID() != c.SpanID() ||
		spans[1].SpanContext.SpanID() != c.SpanID() || spans[1].Parent.IsValid() || spans[2].SpanContext.TraceID() == c.TraceID() {
		t.Errorf("spans %+v", spans)
	}
}

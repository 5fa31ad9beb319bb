package telemetry

import (
	"fmt"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Attribute keys of spans. Every span of an item's attempt has them, see [openSpans].
const (
	SpanCampaignKey = attribute.Key("ddiff.campaign")
	SpanItemKey     = attribute.Key("ddiff.item.id")
	SpanAttemptKey  = attribute.Key("ddiff.attempt")
	SpanWorkerKey   = attribute.Key("ddiff.worker")
	SpanDeviceKey   = attribute.Key("ddiff.device")
)

// itemSampler applies a ratio to the first attempts at items, and leaves out single calls of servers: a trace of one call tells less than the
// metrics. It samples all other traces: those of campaigns, and later attempts at items.
type itemSampler struct{ ratio sdktrace.Sampler }

// newSampler returns the sampler that OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG name, by default one that samples
// everything. IgnoredVariables reports invalid values.
func newSampler(environ func(string) string) sdktrace.Sampler {
	name := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(environ("OTEL_TRACES_SAMPLER"))), "parentbased_")
	ratio := 1.0
	switch name {
	case "always_off":
		return sdktrace.NeverSample()
	case "traceidratio":
		if r, ok := ratioOf(environ("OTEL_TRACES_SAMPLER_ARG")); ok {
			ratio = r
		}
	}
	return sdktrace.ParentBased(itemSampler{sdktrace.TraceIDRatioBased(ratio)})
}

func ratioOf(text string) (ratio float64, ok bool) {
	ratio, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return ratio, err == nil && ratio >= 0 && ratio <= 1
}

// ShouldSample decides about a root span.
func (s itemSampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	attempt := int64(0) // not of an item
	for _, a := range p.Attributes {
		if a.Key == SpanAttemptKey {
			attempt = a.Value.AsInt64()
		}
	}
	switch {
	case attempt == 0 && p.Kind == trace.SpanKindClient:
		return sdktrace.NeverSample().ShouldSample(p)
	case attempt != 1:
		return sdktrace.AlwaysSample().ShouldSample(p)
	}
	return s.ratio.ShouldSample(p)
}

// Description implements sdktrace.Sampler.
func (s itemSampler) Description() string {
	return fmt.Sprintf("ItemSampler{%s}", s.ratio.Description())
}

package queue

import (
	"maps"
	"slices"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/propagation"
)

// carrier lets a propagator read and write the headers of a message. Unlike the carrier for HTTP it preserves the case
// of a key: "traceparent" stays in lower case, as NATS tools expect.
type carrier nats.Header

var _ propagation.TextMapCarrier = carrier(nil)

// Get implements propagation.TextMapCarrier.
func (c carrier) Get(key string) string {
	if values := c[key]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Set implements propagation.TextMapCarrier.
func (c carrier) Set(key, value string) { c[key] = []string{value} }

// Keys implements propagation.TextMapCarrier.
func (c carrier) Keys() []string { return slices.Sorted(maps.Keys(c)) }

package queue

import (
	"maps"
	"slices"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/propagation"
)

// carrier lets a propagator read and write the headers of a message. Unlike the carrier for HTTP it preserves the case
// of a key: "traceparent" stays in lower case, as NATS tools expect.
type carrier struct{ nats.Header }

var _ propagation.TextMapCarrier = carrier{}

// Keys implements propagation.TextMapCarrier.
func (c carrier) Keys() []string { return slices.Collect(maps.Keys(c.Header)) }

package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// Transfer are the metrics of the result store and of datasets. They may be used concurrently.
type Transfer struct {
	requests metric.Int64Counter
	duration metric.Float64Histogram
	bytes    metric.Int64Counter
	dataset  metric.Int64Counter
}

// NewTransfer creates the instruments on meter. It fails only when the meter has a conflicting instrument of the same
// name.
func NewTransfer(meter metric.Meter) (*Transfer, error) {
	m := maker{meter: meter}
	t := &Transfer{
		requests: m.counter("ddiff.store.requests"), duration: m.histogram("ddiff.store.duration"),
		bytes: m.counter("ddiff.store.io"), dataset: m.counter("ddiff.dataset.io"),
	}
	return t, m.err()
}

// Call records one call of the store: its operation, the class of its error or "", its duration, and the bytes of
// objects that it read and wrote.
func (t *Transfer) Call(ctx context.Context, operation, failure string, took time.Duration, read, written int) {
	t.requests.Add(ctx, 1, metric.WithAttributes(OperationKey.String(operation), ErrorKey.String(failure)))
	t.duration.Record(ctx, took.Seconds(), metric.WithAttributes(OperationKey.String(operation)))
	if read > 0 {
		t.bytes.Add(ctx, int64(read), metric.WithAttributes(DirectionKey.String("read")))
	}
	if written > 0 {
		t.bytes.Add(ctx, int64(written), metric.WithAttributes(DirectionKey.String("write")))
	}
}

// Dataset records the bytes of one file of a dataset.
func (t *Transfer) Dataset(ctx context.Context, read int) { t.dataset.Add(ctx, int64(read)) }

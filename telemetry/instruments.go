package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// The stages of an item, in order.
const (
	StageFetch   = "fetch"   // bytes from storage to a tensor
	StageMeasure = "measure" // truth to measurement
	StageRestore = "restore" // measurement to restored tensor
	StageScore   = "score"   // restored tensor to metrics
	StageWrite   = "write"   // results to storage
	StageSettle  = "settle"  // outcome to ack or nak
)

// Instruments are the metrics of a worker and of ddiff run. They may be used concurrently. [Metrics] describes them.
type Instruments struct {
	Items              metric.Int64Counter
	ItemDuration       metric.Float64Histogram
	StageDuration      metric.Float64Histogram
	Steps              metric.Int64Counter
	StepDuration       metric.Float64Histogram
	SolverTime         metric.Float64Counter
	NetworkEvaluations metric.Int64Counter
	BatchFill          metric.Float64Histogram
	Redeliveries       metric.Int64Counter
	Retries            metric.Int64Counter
	Faults             metric.Int64Counter
	Suspensions        metric.Int64Counter

	meter metric.Meter
}

// NewInstruments creates the instruments on meter. It fails only when the meter has a conflicting instrument of the
// same name.
func NewInstruments(meter metric.Meter) (*Instruments, error) {
	m := maker{meter: meter}
	in := &Instruments{
		Items: m.counter("ddiff.items"), ItemDuration: m.histogram("ddiff.item.duration"), StageDuration: m.histogram("ddiff.stage.duration"),
		Steps: m.counter("ddiff.steps"), StepDuration: m.histogram("ddiff.step.duration"), SolverTime: m.timer("ddiff.solver.time"),
		NetworkEvaluations: m.counter("ddiff.network.evaluations"),
		BatchFill:          m.histogram("ddiff.batch.fill"),
		Redeliveries:       m.counter("ddiff.redeliveries"), Retries: m.counter("ddiff.retries"),
		Faults: m.counter("ddiff.faults"), Suspensions: m.counter("ddiff.suspensions"),
		meter: meter,
	}
	if err := m.err(); err != nil {
		return nil, err
	}
	// Prometheus sees an increase only from an earlier value: without this one, the first events of a process would not count,
	// nor any event of a process that starts and fails again and again.
	for _, counter := range []metric.Int64Counter{in.Steps, in.Redeliveries, in.Retries, in.Faults, in.Suspensions} {
		counter.Add(context.Background(), 0)
	}
	return in, nil
}

// ObserveLeases reports held as the number of items that the process holds, until stop is called.
func (in *Instruments) ObserveLeases(held func() int) (stop func() error, err error) {
	return observe(in.meter, FromWorker, func(report report) { report("ddiff.leases", float64(held())) })
}

// Stage starts a span named name with attrs under the span in ctx. The returned context holds the new span. The
// returned function ends the span and must be called once: it records an error on the span, see [EndSpan], and the time since Stage in
// StageDuration.
func (in *Instruments) Stage(ctx context.Context, tracer trace.Tracer, name string,
	attrs ...attribute.KeyValue,
) (context.Context, func(err error, class string)) {
	begin := time.Now()
	ctx, span := tracer.Start(ctx, name, trace.WithAttributes(attrs...))
	return ctx, func(err error, class string) {
		EndSpan(span, err, class)
		in.StageDuration.Record(ctx, time.Since(begin).Seconds(), metric.WithAttributes(StageKey.String(name)))
	}
}

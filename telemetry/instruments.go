package telemetry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace"
)

// Attribute keys of the metrics. Their values come from short closed lists, to limit the number of series.
const (
	// TaskKey is the restoration task of an item.
	TaskKey = attribute.Key("task")
	// OutcomeKey is the outcome of an item.
	OutcomeKey = attribute.Key("outcome")
	// StageKey is the stage of an item, one of the Stage constants.
	StageKey = attribute.Key("stage")
)

// The stages of an item, in order.
const (
	StageFetch   = "fetch"   // bytes from storage to a tensor
	StageMeasure = "measure" // truth to measurement
	StageRestore = "restore" // measurement to restored tensor
	StageScore   = "score"   // restored tensor to metrics
	StageWrite   = "write"   // results to storage
	StageSettle  = "settle"  // outcome to ack, nak or dead letter
)

// Instruments are the metrics of ddiff. They may be used concurrently.
type Instruments struct {
	// Items counts finished items (ddiff.items; attributes task, outcome).
	Items metric.Int64Counter
	// ItemDuration is the seconds from lease to settled, per item (ddiff.item.duration).
	ItemDuration metric.Float64Histogram
	// Steps counts solver steps, one per image and step (ddiff.steps).
	Steps metric.Int64Counter
	// StepDuration is the seconds of one step of a batch (ddiff.step.duration).
	StepDuration metric.Float64Histogram
	// BatchFill is the number of items divided by the capacity of each batch, in (0, 1] (ddiff.batch.fill).
	BatchFill metric.Float64Histogram
	// Redeliveries counts redelivered messages (ddiff.redeliveries).
	Redeliveries metric.Int64Counter
	// Faults counts the items that were released after a failure of the worker's environment (ddiff.faults).
	Faults metric.Int64Counter
	// Suspensions counts how often a worker stopped leasing to test its environment (ddiff.suspensions).
	Suspensions metric.Int64Counter
	// StageDuration is the seconds of one stage (ddiff.stage.duration; attribute stage).
	StageDuration metric.Float64Histogram
}

// NewInstruments creates the instruments on meter. It fails only when the meter has a conflicting instrument of the
// same name.
func NewInstruments(meter metric.Meter) (*Instruments, error) {
	var errs []error
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	histogram := func(name, unit, description string, options ...metric.Float64HistogramOption) metric.Float64Histogram {
		options = append(options, metric.WithUnit(unit), metric.WithDescription(description))
		h, err := meter.Float64Histogram(name, options...)
		errs = append(errs, err)
		return h
	}
	in := &Instruments{
		Items:         counter("ddiff.items", "{item}", "Finished items."),
		ItemDuration:  histogram("ddiff.item.duration", "s", "Time from lease to settled, per item."),
		Steps:         counter("ddiff.steps", "{step}", "Solver steps, one per image and step."),
		StepDuration:  histogram("ddiff.step.duration", "s", "Time of one solver step of a batch."),
		Redeliveries:  counter("ddiff.redeliveries", "{message}", "Redelivered messages."),
		Faults:        counter("ddiff.faults", "{item}", "Items released after a failure of the worker's environment."),
		Suspensions:   counter("ddiff.suspensions", "{suspension}", "Suspensions of a worker until its environment passes a test."),
		StageDuration: histogram("ddiff.stage.duration", "s", "Time of one stage of an item."),
		BatchFill: histogram("ddiff.batch.fill", "1", "Items divided by the capacity of a batch.",
			metric.WithExplicitBucketBoundaries(0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1)),
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("create metric instruments: %w", err)
	}
	return in, nil
}

// durationView gives every duration an exponential histogram: steps take milliseconds and items minutes, and no fixed
// set of buckets resolves both.
func durationView() sdkmetric.View {
	return sdkmetric.NewView(
		sdkmetric.Instrument{Name: "*.duration", Kind: sdkmetric.InstrumentKindHistogram},
		sdkmetric.Stream{Aggregation: sdkmetric.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 20}},
	)
}

// Stage starts a span named name with attrs under the span in ctx. The returned context holds the new span. The
// returned function ends the span and must be called once: it records an error on the span, and the time since Stage in
// StageDuration.
func (in *Instruments) Stage(ctx context.Context, tracer trace.Tracer, name string,
	attrs ...attribute.KeyValue,
) (context.Context, func(err error)) {
	begin := time.Now()
	ctx, span := tracer.Start(ctx, name, trace.WithAttributes(attrs...))
	return ctx, func(err error) {
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
		in.StageDuration.Record(ctx, time.Since(begin).Seconds(), metric.WithAttributes(StageKey.String(name)))
	}
}

package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// fileFlushInterval bounds how long an ended span waits before it is in the trace file, and so
// how much of a trace a killed process can lose.
const fileFlushInterval = time.Second

// Telemetry is the traces, metrics and logs of one process. Make it with [Start].
type Telemetry struct {
	// Logger writes log records; those logged with a context that holds a span carry its
	// trace_id and span_id.
	Logger *slog.Logger

	traces   *sdktrace.TracerProvider
	metrics  *sdkmetric.MeterProvider
	exporter sdktrace.SpanExporter // over the network; nil when there is none

	stopOnce sync.Once
	stopErr  error
}

// Start sets up the telemetry that cfg and the environment ask for. The returned Telemetry must
// be shut down. It fails when cfg is invalid, when the trace file cannot be opened, or when an
// OTEL_* variable names an exporter or protocol that does not exist.
func Start(ctx context.Context, cfg Config) (*Telemetry, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	t := &Telemetry{Logger: newLogger(cfg)}

	res, err := newResource(ctx, cfg)
	switch {
	case errors.Is(err, resource.ErrPartialResource):
		t.Logger.WarnContext(ctx, "resource attributes are incomplete", "error", err)
	case err != nil:
		return nil, fmt.Errorf("describe this process: %w", err)
	}
	traceOptions := []sdktrace.TracerProviderOption{sdktrace.WithResource(res)}
	metricOptions := []sdkmetric.Option{sdkmetric.WithResource(res), sdkmetric.WithView(durationView())}

	on := exportersIn(cfg.Environ)
	var reader sdkmetric.Reader
	if on.traces {
		if t.exporter, err = autoexport.NewSpanExporter(ctx); err != nil {
			return nil, fmt.Errorf("set up the trace exporter (OTEL_TRACES_EXPORTER, OTEL_EXPORTER_OTLP_*): %w", err)
		}
	}
	if on.metrics {
		if reader, err = autoexport.NewMetricReader(ctx); err != nil {
			err = fmt.Errorf("set up the metric exporter (OTEL_METRICS_EXPORTER, OTEL_EXPORTER_OTLP_*): %w", err)
			return nil, errors.Join(err, shutdown(ctx, t.exporter, nil))
		}
		metricOptions = append(metricOptions, sdkmetric.WithReader(reader))
	}
	// The file comes before the network: on shutdown processors are flushed in this order, and a
	// collector that does not answer must not cost the file its last spans.
	if on.file && cfg.TraceFile != "" {
		file, err := otlptrace.New(ctx, newFileClient(cfg.TraceFile))
		if err != nil {
			return nil, errors.Join(err, shutdown(ctx, t.exporter, reader))
		}
		traceOptions = append(traceOptions, sdktrace.WithBatcher(file,
			sdktrace.WithBatchTimeout(fileFlushInterval), sdktrace.WithBlocking()))
	}
	if t.exporter != nil {
		traceOptions = append(traceOptions, sdktrace.WithBatcher(t.exporter))
	}

	logger := t.Logger
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		logger.Warn("telemetry export", "error", err)
	}))
	t.traces = sdktrace.NewTracerProvider(traceOptions...)
	t.metrics = sdkmetric.NewMeterProvider(metricOptions...)
	return t, nil
}

// Tracer returns the tracer for the package or component that name identifies.
func (t *Telemetry) Tracer(name string) trace.Tracer { return t.traces.Tracer(name) }

// Meter returns the meter for the package or component that name identifies.
func (t *Telemetry) Meter(name string) metric.Meter { return t.metrics.Meter(name) }

// Shutdown writes out what has been recorded and stops the exporters. It returns when that is
// done or when ctx ends, whichever comes first; in the second case what could not be exported in
// time is dropped and the error says so. Later calls return the first call's error.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	t.stopOnce.Do(func() { t.stopErr = t.stop(ctx) })
	return t.stopErr
}

// stop flushes traces and metrics side by side, so that neither waits out the other's deadline.
func (t *Telemetry) stop(ctx context.Context) error {
	var traceErr, metricErr error
	var wg sync.WaitGroup
	wg.Go(func() {
		traceErr = t.traces.Shutdown(ctx)
		if ctx.Err() != nil {
			// The provider no longer waits, but its last upload may still be under way: stopping
			// the exporter ends it. The exporter would only repeat ctx's error.
			_ = shutdown(ctx, t.exporter, nil)
		}
	})
	wg.Go(func() { metricErr = t.metrics.Shutdown(ctx) })
	wg.Wait()
	if err := errors.Join(traceErr, metricErr); err != nil {
		return fmt.Errorf("flush telemetry: %w", err)
	}
	return nil
}

// shutdown stops those of its arguments that are not nil.
func shutdown(ctx context.Context, exporter sdktrace.SpanExporter, reader sdkmetric.Reader) error {
	var errs []error
	if exporter != nil {
		errs = append(errs, exporter.Shutdown(ctx))
	}
	if reader != nil {
		errs = append(errs, reader.Shutdown(ctx))
	}
	return errors.Join(errs...)
}

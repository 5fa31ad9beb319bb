package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
)

// fileFlushInterval limits the time until an ended span is in the trace file, and thus the spans that a killed process
// loses.
const fileFlushInterval = time.Second

// failureInterval is the least time between two log lines about failed exports.
const failureInterval = 10 * time.Minute

// Telemetry is the traces, metrics and logs of one process; [Start] creates it.
type Telemetry struct {
	// Logger writes log records. Records whose context holds a span carry its trace_id and span_id.
	Logger *slog.Logger

	// A field of a type of the SDK would make every package that uses Telemetry compile the SDK's generic functions again.
	traces   tracerProvider
	metrics  meterProvider
	exporter stopper      // over the network; nil when there is none
	endpoint http.Handler // for Prometheus, or nil
	endSpans func(reason string)

	stopOnce sync.Once
	stopErr  error
}

type stopper interface {
	Shutdown(ctx context.Context) error
}

type tracerProvider interface {
	trace.TracerProvider
	stopper
}

type meterProvider interface {
	metric.MeterProvider
	stopper
}

// Start sets up the telemetry of cfg and the environment. The caller must shut down the returned Telemetry. Start fails
// when cfg is invalid, when the trace file cannot be opened, or when an OTEL_* variable names an unknown exporter or
// protocol, or a file that cannot be read.
func Start(ctx context.Context, cfg Config) (*Telemetry, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	open := &openSpans{byID: map[trace.SpanID]sdktrace.ReadWriteSpan{}}
	t := &Telemetry{Logger: NewLogger(cfg), endSpans: open.end}

	otel.SetLogger(logr.Discard()) // the SDK writes values of variables to standard error, such as headers with a password

	res, err := newResource(ctx, cfg)
	switch {
	case errors.Is(err, resource.ErrPartialResource):
		t.Logger.WarnContext(ctx, "resource attributes are incomplete", "error", err)
	case err != nil:
		return nil, fmt.Errorf("describe this process: %w", err)
	}
	traceOptions := []sdktrace.TracerProviderOption{
		sdktrace.WithResource(res), sdktrace.WithSampler(newSampler(os.Getenv)), sdktrace.WithIDGenerator(identities{}),
		sdktrace.WithSpanProcessor(open),
	}
	metricOptions := []sdkmetric.Option{sdkmetric.WithResource(res), sdkmetric.WithCardinalityLimit(maxSeries)}

	if cfg.Prometheus {
		registry := prometheus.NewRegistry()
		registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		endpoint, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(),
			otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
		if err != nil {
			return nil, fmt.Errorf("set up the metrics for Prometheus: %w", err)
		}
		metricOptions = append(metricOptions, sdkmetric.WithReader(endpoint))
		t.endpoint = promhttp.HandlerFor(registry, promhttp.HandlerOpts{
			ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true, // with exemplars
		})
	}
	off := disabled(os.Getenv)
	traces, metrics := !off && exports(os.Getenv, "TRACES"), !off && exports(os.Getenv, "METRICS")
	if traces || metrics {
		if err := checkFiles(os.Getenv); err != nil {
			return nil, err
		}
	}
	var exporter sdktrace.SpanExporter
	var reader sdkmetric.Reader
	if traces {
		if exporter, err = autoexport.NewSpanExporter(ctx); err != nil {
			return nil, fmt.Errorf("set up the trace exporter (OTEL_TRACES_EXPORTER, OTEL_EXPORTER_OTLP_*): %w", err)
		}
		t.exporter = exporter
	}
	if metrics {
		if reader, err = autoexport.NewMetricReader(ctx); err != nil {
			err = fmt.Errorf("set up the metric exporter (OTEL_METRICS_EXPORTER, OTEL_EXPORTER_OTLP_*): %w", err)
			return nil, errors.Join(err, shutdown(ctx, t.exporter))
		}
		metricOptions = append(metricOptions, sdkmetric.WithReader(reader))
	}
	// The file comes before the network: Shutdown flushes processors in this order, and a collector
	// that does not answer must not delay the last spans of the file.
	if !off && cfg.TraceFile != "" {
		file, err := otlptrace.New(ctx, &fileClient{path: cfg.TraceFile})
		if err != nil {
			return nil, errors.Join(err, shutdown(ctx, t.exporter, reader))
		}
		traceOptions = append(traceOptions, sdktrace.WithBatcher(file,
			sdktrace.WithBatchTimeout(fileFlushInterval), sdktrace.WithBlocking()))
	}
	if exporter != nil {
		traceOptions = append(traceOptions, sdktrace.WithBatcher(exporter))
	}
	failures := rate.Sometimes{First: 1, Interval: failureInterval}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		failures.Do(func() {
			t.Logger.Warn("telemetry export failed; failures within ten minutes are one line", "error", err)
		})
	}))
	t.traces = sdktrace.NewTracerProvider(traceOptions...)
	t.metrics = sdkmetric.NewMeterProvider(metricOptions...)
	return t, nil
}

// Tracer returns the tracer of the named package or component.
func (t *Telemetry) Tracer(name string) trace.Tracer { return t.traces.Tracer(name) }

// Meter returns the meter of the named package or component.
func (t *Telemetry) Meter(name string) metric.Meter { return t.metrics.Meter(name) }

// Metrics serves the metrics to Prometheus. It is nil without Config.Prometheus.
func (t *Telemetry) Metrics() http.Handler { return t.endpoint }

// EndSpans ends the spans that are open, with an error. It is for a process that exits while operations still run; Shutdown
// does the same without a reason.
func (t *Telemetry) EndSpans(reason string) { t.endSpans(reason) }

// Shutdown ends the open spans, exports the recorded telemetry and stops the exporters. It returns when the export is done or when ctx ends;
// in the latter case the remaining telemetry is dropped and an error returned. It is idempotent and may be called
// concurrently: every call returns the first call's error.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	t.stopOnce.Do(func() { t.stopErr = t.stop(ctx) })
	return t.stopErr
}

// stop flushes traces and metrics concurrently, so that neither uses up the other's deadline.
func (t *Telemetry) stop(ctx context.Context) error {
	t.EndSpans("the process ended")
	var traceErr, metricErr error
	var wg sync.WaitGroup
	wg.Go(func() {
		traceErr = t.traces.Shutdown(ctx)
		if ctx.Err() != nil {
			// The provider no longer waits, but its last upload may still be in flight: stopping
			// the exporter cancels it. The exporter would only repeat ctx's error.
			_ = shutdown(ctx, t.exporter)
		}
	})
	wg.Go(func() { metricErr = t.metrics.Shutdown(ctx) })
	wg.Wait()
	if err := errors.Join(traceErr, metricErr); err != nil {
		return fmt.Errorf("flush telemetry: %w", err)
	}
	return nil
}

// shutdown stops its non-nil arguments.
func shutdown(ctx context.Context, all ...stopper) error {
	var errs []error
	for _, s := range all {
		if s != nil {
			errs = append(errs, s.Shutdown(ctx))
		}
	}
	return errors.Join(errs...)
}

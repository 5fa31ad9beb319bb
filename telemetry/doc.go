// Package telemetry sets up traces, metrics and logs for one process.
//
// [Start] reads a [Config] and the standard OpenTelemetry environment variables and returns a [Telemetry]: tracers,
// meters and a structured logger, which the caller injects where they are needed. Exporters are opt-in:
//
//   - OTEL_EXPORTER_OTLP_ENDPOINT (or its _TRACES_ and _METRICS_ forms), OTEL_TRACES_EXPORTER and OTEL_METRICS_EXPORTER
//     enable the network exporters; the other OTEL_* variables then have their usual meaning;
//   - Config.TraceFile appends spans to a file, one OTLP/JSON TracesData object per line;
//   - OTEL_SDK_DISABLED=true disables all exporters.
//
// Spans have ids even without an exporter, so that log lines, message headers and results can name their trace.
//
// Package queue carries trace context across processes. The process-wide settings are OpenTelemetry's error handler,
// because the SDK has no other way to report a failed export: it writes to the logger of the last Telemetry started, and
// OpenTelemetry's own log, which is discarded.
package telemetry

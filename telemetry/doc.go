// Package telemetry sets up traces, metrics and logs for one process.
//
// [Start] reads a [Config] and the standard OpenTelemetry environment variables and returns a
// [Telemetry]: tracers, meters and a structured logger, which the caller hands to whoever needs
// them. Nothing is exported unless someone asked for it:
//
//   - OTEL_EXPORTER_OTLP_ENDPOINT (or its _TRACES_ and _METRICS_ forms), OTEL_TRACES_EXPORTER and
//     OTEL_METRICS_EXPORTER switch the network exporters on; every other OTEL_* variable then has
//     its usual meaning;
//   - Config.TraceFile appends spans to a file, one OTLP/JSON TracesData object per line;
//   - OTEL_SDK_DISABLED=true switches all of these off.
//
// Spans are made and carry identities even when nothing is exported, so that log lines, message
// headers and results can name their trace.
//
// Package queue carries trace context across processes. The one process-wide setting is OpenTelemetry's error handler, because the SDK has no other place to report a failed
// export to: it writes to the logger of the Telemetry that was started last.
package telemetry

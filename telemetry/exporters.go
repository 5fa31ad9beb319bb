package telemetry

import "strings"

type exporters struct {
	traces  bool // over the network
	metrics bool // over the network
	file    bool // to the trace file, if it is configured
}

// exportersIn reads the enabled exporters from the environment. A network exporter is enabled only when its variable
// names an exporter or an OTLP endpoint is set: the standard's default, OTLP to a collector on this host, would dial an
// address that is not configured.
func exportersIn(environ func(string) string) exporters {
	if strings.EqualFold(environ("OTEL_SDK_DISABLED"), "true") {
		return exporters{}
	}
	enabled := func(exporter, endpoint string) bool {
		switch environ(exporter) {
		case "none":
			return false
		case "":
			return environ("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || environ(endpoint) != ""
		default:
			return true
		}
	}
	return exporters{
		traces:  enabled("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
		metrics: enabled("OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"),
		file:    true,
	}
}

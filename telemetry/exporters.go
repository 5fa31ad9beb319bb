package telemetry

import "strings"

// exporters says which exporters are wanted.
type exporters struct {
	traces  bool // over the network
	metrics bool // over the network
	file    bool // to the trace file, if one is named
}

// exportersIn reads from the environment which exporters are wanted. A network exporter is wanted
// only when its variable names one or an OTLP endpoint is given; without either, the standard's
// default (OTLP to a collector on this host) would dial an address nobody chose.
func exportersIn(environ func(string) string) exporters {
	if strings.EqualFold(environ("OTEL_SDK_DISABLED"), "true") {
		return exporters{}
	}
	wanted := func(exporter, endpoint string) bool {
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
		traces:  wanted("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
		metrics: wanted("OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"),
		file:    true,
	}
}

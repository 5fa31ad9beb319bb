package telemetry

import (
	"cmp"
	"strings"
)

// disabled reports whether the environment disables all exporters.
func disabled(environ func(string) string) bool {
	return strings.EqualFold(environ("OTEL_SDK_DISABLED"), "true")
}

// exports reports whether the environment enables the network exporter of a signal, TRACES or METRICS: its variable names an exporter, or an
// OTLP endpoint is set. The standard's default, OTLP to a collector on this host, would dial an address that is not configured.
func exports(environ func(string) string, signal string) bool {
	switch environ("OTEL_" + signal + "_EXPORTER") {
	case "none":
		return false
	case "":
		return cmp.Or(environ("OTEL_EXPORTER_OTLP_ENDPOINT"), environ("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT")) != ""
	}
	return true
}

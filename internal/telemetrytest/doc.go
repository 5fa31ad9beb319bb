// Package telemetrytest checks what operators see of a cluster: the dashboards of deploy/grafana and the alerts of
// deploy/prometheus, by the parser of Prometheus and the list of metrics in package telemetry. It is a module of its own, because
// Prometheus and the OpenTelemetry Collector need many modules.
//
// Command collector is the OpenTelemetry Collector of `make telemetry-test`.
package telemetrytest

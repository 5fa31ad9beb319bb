package telemetry

import (
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/attribute"
)

// Kind is the kind of an instrument.
type Kind string

// The kinds.
const (
	KindCounter   Kind = "counter"
	KindGauge     Kind = "gauge"
	KindHistogram Kind = "histogram"
)

// Source is the kind of process that exports a metric.
type Source string

// The sources. The process of ddiff run exports the metrics of a process and of a worker.
const (
	// FromProcess: workers, coordinators and ddiff run.
	FromProcess Source = "process"
	// FromWorker: workers and ddiff run.
	FromWorker Source = "worker"
	// FromCoordinator: every coordinator.
	FromCoordinator Source = "coordinator"
	// FromLeader: the leading coordinator only. At a change of the leader, the metric ends in one process and begins in
	// another, with a gap of up to the time of an election.
	FromLeader Source = "leader"
)

// Metric describes one metric of ddiff.
type Metric struct {
	// Name is the name in OTLP.
	Name string
	Kind Kind
	// Unit is a UCUM unit.
	Unit string
	// Labels are the attribute keys. Their values come from short lists; none is the id or the name of an item.
	Labels []attribute.Key
	Source Source
	// Description is one sentence.
	Description string
	// Bounds are the bucket boundaries of a histogram, in its unit.
	Bounds []float64
}

// PrometheusName returns the name of a metric in Prometheus, without the suffixes _bucket, _sum and _count of a
// histogram.
func (m Metric) PrometheusName() (string, error) {
	kind := map[Kind]otlptranslator.MetricType{
		KindCounter:   otlptranslator.MetricTypeMonotonicCounter,
		KindGauge:     otlptranslator.MetricTypeGauge,
		KindHistogram: otlptranslator.MetricTypeHistogram,
	}[m.Kind]
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	return namer.Build(otlptranslator.Metric{Name: m.Name, Unit: m.Unit, Type: kind})
}

package telemetry

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/attribute"
)

// PrometheusName returns the name of a metric in Prometheus, without the suffixes _bucket, _sum and _count of a
// histogram.
func (m Metric) PrometheusName() (string, error) {
	kind := map[Kind]otlptranslator.MetricType{
		KindCounter:       otlptranslator.MetricTypeMonotonicCounter,
		KindUpDownCounter: otlptranslator.MetricTypeNonMonotonicCounter,
		KindGauge:         otlptranslator.MetricTypeGauge,
		KindHistogram:     otlptranslator.MetricTypeHistogram,
	}[m.Kind]
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	return namer.Build(otlptranslator.Metric{Name: m.Name, Unit: m.Unit, Type: kind})
}

// Reference returns the tables of all metrics and labels as Markdown, for docs/telemetry.md.
func Reference() (string, error) {
	var b bytes.Buffer
	fmt.Fprint(&b, "| metric | in Prometheus | kind, unit | labels | from | description |\n|---|---|---|---|---|---|\n")
	for _, m := range Metrics() {
		name, err := m.PrometheusName()
		if err != nil {
			return "", fmt.Errorf("name %s for Prometheus: %w", m.Name, err)
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s, `%s` | %s | %s | %s |\n", m.Name, name, m.Kind, m.Unit, keys(m.Labels), m.Source, m.Description)
	}
	fmt.Fprint(&b, "\n| label | values |\n|---|---|\n")
	for _, l := range Labels() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", l.Key, l.Values)
	}
	return b.String(), nil
}

func keys(labels []attribute.Key) string {
	var names []string
	for _, k := range labels {
		names = append(names, "`"+string(k)+"`")
	}
	return strings.Join(names, ", ")
}

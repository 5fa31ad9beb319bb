package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// maker creates listed instruments on a meter.
type maker struct {
	meter metric.Meter
	errs  []error
}

func (m *maker) err() error {
	if err := errors.Join(m.errs...); err != nil {
		return fmt.Errorf("create metric instruments: %w", err)
	}
	return nil
}

// look returns the description of a metric. An unlisted name is an error.
func (m *maker) look(name string, kind Kind) Metric {
	for _, d := range Metrics() {
		if d.Name == name && d.Kind == kind {
			return d
		}
	}
	m.errs = append(m.errs, fmt.Errorf("%s is not in the list of metrics as a %s", name, kind))
	return Metric{}
}

// report reports the value of a listed metric; the values of its labels have the order of the list.
type report func(name string, value float64, labels ...string)

// observe reports what read reports, of the gauges of a source, whenever metrics are read, until stop is called.
func observe(meter metric.Meter, source Source, read func(report)) (stop func() error, err error) {
	m := maker{meter: meter}
	gauges, labels, all := map[string]metric.Float64ObservableGauge{}, map[string][]attribute.Key{}, []metric.Observable{}
	for _, d := range Metrics() {
		if d.Source != source || d.Kind != KindGauge {
			continue
		}
		gauges[d.Name] = instrument(&m, d.Name, d.Kind, meter.Float64ObservableGauge)
		labels[d.Name] = d.Labels
		all = append(all, gauges[d.Name])
	}
	if err := m.err(); err != nil {
		return nil, err
	}
	registered, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		read(func(name string, value float64, values ...string) {
			attributes := make([]attribute.KeyValue, len(values))
			for i, v := range values {
				attributes[i] = labels[name][i].String(v)
			}
			o.ObserveFloat64(gauges[name], value, metric.WithAttributes(attributes...))
		})
		return nil
	}, all...)
	if err != nil {
		return nil, fmt.Errorf("observe the gauges of a %s: %w", source, err)
	}
	return registered.Unregister, nil
}

// instrument creates a listed instrument. O is the interface of its options.
func instrument[I, O any](m *maker, name string, kind Kind, create func(string, ...O) (I, error)) I {
	d := m.look(name, kind)
	options := []O{any(metric.WithUnit(d.Unit)).(O), any(metric.WithDescription(d.Description)).(O)}
	if kind == KindHistogram {
		options = append(options, any(metric.WithExplicitBucketBoundaries(d.Bounds...)).(O))
	}
	i, err := create(name, options...)
	m.errs = append(m.errs, err)
	return i
}

func (m *maker) counter(name string) metric.Int64Counter {
	return instrument(m, name, KindCounter, m.meter.Int64Counter)
}

func (m *maker) timer(name string) metric.Float64Counter {
	return instrument(m, name, KindCounter, m.meter.Float64Counter)
}

func (m *maker) histogram(name string) metric.Float64Histogram {
	return instrument(m, name, KindHistogram, m.meter.Float64Histogram)
}

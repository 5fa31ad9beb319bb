package telemetry

import (
	"errors"
	"fmt"

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

// register reports what observe observes until stop is called.
func register(meter metric.Meter, what string, observe metric.Callback, instruments ...metric.Observable) (stop func() error, err error) {
	registered, err := meter.RegisterCallback(observe, instruments...)
	if err != nil {
		return nil, fmt.Errorf("observe %s: %w", what, err)
	}
	return registered.Unregister, nil
}

func (m *maker) counter(name string) metric.Int64Counter {
	d := m.look(name, KindCounter)
	c, err := m.meter.Int64Counter(name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description))
	m.errs = append(m.errs, err)
	return c
}

func (m *maker) timer(name string) metric.Float64Counter {
	d := m.look(name, KindCounter)
	c, err := m.meter.Float64Counter(name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description))
	m.errs = append(m.errs, err)
	return c
}

func (m *maker) histogram(name string) metric.Float64Histogram {
	d := m.look(name, KindHistogram)
	h, err := m.meter.Float64Histogram(name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description),
		metric.WithExplicitBucketBoundaries(d.Bounds...))
	m.errs = append(m.errs, err)
	return h
}

func (m *maker) gauge(name string) metric.Int64ObservableGauge {
	d := m.look(name, KindGauge)
	g, err := m.meter.Int64ObservableGauge(name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description))
	m.errs = append(m.errs, err)
	return g
}

func (m *maker) floatGauge(name string) metric.Float64ObservableGauge {
	d := m.look(name, KindGauge)
	g, err := m.meter.Float64ObservableGauge(name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description))
	m.errs = append(m.errs, err)
	return g
}

func (m *maker) amount(name string) metric.Int64ObservableUpDownCounter {
	d := m.look(name, KindUpDownCounter)
	g, err := m.meter.Int64ObservableUpDownCounter(name, metric.WithUnit(d.Unit), metric.WithDescription(d.Description))
	m.errs = append(m.errs, err)
	return g
}

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

func (m *maker) gauge(name string) metric.Int64ObservableGauge {
	return instrument(m, name, KindGauge, m.meter.Int64ObservableGauge)
}

func (m *maker) floatGauge(name string) metric.Float64ObservableGauge {
	return instrument(m, name, KindGauge, m.meter.Float64ObservableGauge)
}

func (m *maker) amount(name string) metric.Int64ObservableUpDownCounter {
	return instrument(m, name, KindUpDownCounter, m.meter.Int64ObservableUpDownCounter)
}

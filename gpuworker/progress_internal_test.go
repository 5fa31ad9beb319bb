package gpuworker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/solver"
	"ddiff/restore/method"
	"ddiff/telemetry"
)

// sums returns the sums of the counters and histograms of a reader that are not 0, by name and attributes.
func sums(t *testing.T, reader sdkmetric.Reader) map[string]float64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	must(t, reader.Collect(t.Context(), &data))
	out := map[string]float64{}
	name := func(metric string, set attribute.Set) string {
		return strings.TrimSpace(metric + " " + set.Encoded(attribute.DefaultEncoder()))
	}
	for _, m := range data.ScopeMetrics[0].Metrics {
		switch d := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range d.DataPoints {
				if p.Value != 0 {
					out[name(m.Name, p.Attributes)] += float64(p.Value)
				}
			}
		case metricdata.Sum[float64]:
			for _, p := range d.DataPoints {
				out[name(m.Name, p.Attributes)] += p.Value
			}
		case metricdata.Histogram[float64]:
			for _, p := range d.DataPoints {
				out[name(m.Name, p.Attributes)] += p.Sum
			}
		}
	}
	return out
}

// The metrics and spans of a batch count steps of all its images, seconds per step, and the evaluations of a whole run, also
// of one that begins at a checkpoint.
func TestMetricsOfBatch(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	tk := planned(t, newAssigned(Assignment{Engine: e, Owner: "ann"}, 1, nil, 0), sampleItem(t, e, 32, 32))
	tk.Item.Campaign = "c"
	reader, spans := sdkmetric.NewManualReader(), tracetest.NewSpanRecorder()
	in, err := telemetry.NewInstruments(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("ddiff"))
	must(t, err)
	now := &stoppedClock{time.Unix(1000, 0)}
	w, _ := workerOf(t, func(c *Config) {
		c.Now, c.Instruments = func() time.Time { return now.time }, in
		c.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("")
		c.Limits = guard.Limits{Solve: time.Minute}
	})
	p := progressOf(t, w, tk, 2)
	p.begin(job.Course{Done: 1, Steps: 5, Tiles: 1, Cost: method.Cost{Network: 12, NetworkBackward: 7}, Curves: make([]solver.Curves, 2)})
	if limit := p.limit(); limit != 2*time.Minute {
		t.Errorf("the limit of the first step of two images is %v", limit)
	}
	now.time = now.time.Add(4 * time.Second)
	must(t, p.update(3))
	if limit := p.limit(); limit != 400*time.Second {
		t.Errorf("the limit of the next step is %v", limit)
	}
	got := sums(t, reader)
	want := map[string]float64{
		"ddiff.batch.fill": 1, "ddiff.steps": 4, "ddiff.step.duration": 2, "ddiff.solver.time campaign=c,owner=ann": 4,
		// Of five steps, 12·3/5 − 12·1/5 and 7·3/5 − 7·1/5 evaluations, for two images.
		"ddiff.network.evaluations pass=backward": 6, "ddiff.network.evaluations pass=forward": 10,
	}
	if !maps.Equal(got, want) {
		t.Errorf("metrics %v, want %v", got, want)
	}
	now.time = now.time.Add(time.Second)
	must(t, p.update(5))
	got = sums(t, reader)
	if f, b := got["ddiff.network.evaluations pass=forward"], got["ddiff.network.evaluations pass=backward"]; f != 2*(12-2) || b != 2*(7-1) {
		t.Errorf("%g and %g evaluations of the rest of the run", f, b)
	}
	var steps []string
	for _, span := range spans.Ended() {
		text := span.Name()
		for _, kv := range span.Attributes() {
			text += " " + kv.Value.String()
		}
		steps = append(steps, text+" "+span.EndTime().Sub(span.StartTime()).String())
	}
	if !slices.Equal(steps, []string{"steps 2 3 4s", "steps 4 5 1s"}) {
		t.Errorf("spans %q", steps)
	}
}

// A batch whose worker begins to drain while a preflight has the device stops before the next step.
func TestYieldOfDrainingWorker(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	tk := planned(t, newAssigned(Assignment{Engine: e}, 1, nil, 0), sampleItem(t, e, 32, 32))
	w, _ := workerOf(t)
	p := progressOf(t, w, tk, 1)
	p.begin(job.Course{Done: 1, Steps: 5, Curves: make([]solver.Curves, 1)})
	drain, begin := context.WithCancel(t.Context())
	defer begin()
	p.drain = drain
	for _, want := range []error{nil, context.Canceled} {
		w.device <- struct{}{}
		if err := p.yield(); !errors.Is(err, want) || len(w.device) != 1 {
			t.Errorf("%v, want %v; the device is held by %d", err, want, len(w.device))
		}
		<-w.device
		begin()
	}
}

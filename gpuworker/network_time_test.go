package gpuworker_test

import (
	"log/slog"
	"strings"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"ddiff/queue"
	"ddiff/telemetry"
)

// TestNetworkTime: a worker that times the network adds the time of its forward passes, in the solver's time of the same
// batch; another worker counts the passes only.
func TestNetworkTime(t *testing.T) {
	t.Parallel()
	for _, timed := range []bool{true, false} {
		q, s := newQueue(t, queue.Config{}), newStore(t)
		publish(t, q, items(t, 2)...)
		log := &lockedBuffer{}
		cfg, reader := config(t, q, s), sdkmetric.NewManualReader()
		in, err := telemetry.NewInstruments(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("ddiff"))
		must(t, err)
		cfg.Instruments, cfg.TimeNetwork, cfg.Logger = in, timed, slog.New(slog.NewTextHandler(log, nil))
		w := start(t, cfg)
		results(t, q, 2)
		w.stop(t)
		var data metricdata.ResourceMetrics
		must(t, reader.Collect(t.Context(), &data))
		sums, series := map[string]float64{}, map[string]int{}
		for _, m := range data.ScopeMetrics[0].Metrics {
			switch sum := m.Data.(type) {
			case metricdata.Sum[float64]:
				for _, p := range sum.DataPoints {
					sums[m.Name] += p.Value
				}
			case metricdata.Sum[int64]:
				series[m.Name] = len(sum.DataPoints)
				for _, p := range sum.DataPoints {
					sums[m.Name] += float64(p.Value)
				}
			}
		}
		if sums["ddiff.network.evaluations"] != 2*steps || series["ddiff.network.evaluations"] != 1 { // without backward passes
			t.Errorf("%v evaluations, want %d", sums["ddiff.network.evaluations"], 2*steps)
		}
		if got := sums["ddiff.network.time"]; timed != (got > 0) || got > 60 || strings.Contains(log.String(), "could not time") {
			t.Errorf("timed %v: %v s in the network, %v s in the solver; log: %s", timed, got, sums["ddiff.solver.time"], log.String())
		}
	}
}

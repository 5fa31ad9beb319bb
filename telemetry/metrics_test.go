package telemetry

import (
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// recordAll records every metric once.
func recordAll(t *testing.T, meter metric.Meter) {
	t.Helper()
	ctx := t.Context()
	in, err := NewInstruments(meter)
	must(t, err)
	item := metric.WithAttributes(TaskKey.String("hdr"), OutcomeKey.String("done"))
	in.Items.Add(ctx, 3, item)
	in.ItemDuration.Record(ctx, 90, item)
	in.StageDuration.Record(ctx, 1, metric.WithAttributes(StageKey.String(StageFetch)))
	in.Steps.Add(ctx, 100)
	in.StepDuration.Record(ctx, 0.004)
	in.SolverTime.Add(ctx, 0.4, metric.WithAttributes(CampaignKey.String("demo"), OwnerKey.String("ann")))
	in.NetworkEvaluations.Add(ctx, 100, metric.WithAttributes(PassKey.String("forward")))
	in.BatchFill.Record(ctx, 0.5)
	in.Redeliveries.Add(ctx, 1)
	in.Retries.Add(ctx, 1)
	in.Faults.Add(ctx, 1)
	in.Suspensions.Add(ctx, 1)
	_, err = in.ObserveLeases(func() int { return 4 })
	must(t, err)
	transfer, err := NewTransfer(meter)
	must(t, err)
	transfer.Call(ctx, "get", "unavailable", time.Second, 7, 0)
	transfer.Call(ctx, "put", "", time.Second, 0, 9)
	transfer.Dataset(ctx, 11)
	c, err := NewCluster(meter)
	must(t, err)
	c.Publish(ctx, 5)
	c.Settle(ctx, "done", 2)
	_, err = c.ObserveStanding(func() Standing { return Standing{Leads: true} })
	must(t, err)
	_, err = c.Observe(func() ClusterState {
		return ClusterState{
			Lags: map[string]int{"default": 6}, Phases: map[string]int{"running": 1}, Workers: map[string]map[string]int{"default": {"busy": 1}}, Streams: map[string]float64{"DDIFF_WORK": 0.5},
			Campaigns: []CampaignState{{ID: "demo", Blocked: "paused", Pending: 4, InFlight: 2, Items: map[string]int{"done": 3}, DeviceTime: map[string]float64{"spot": 9}, Cost: map[string]float64{"spot": 3}, Limit: 0.5,
				Rate: 0.5, Slack: new(float64), Idle: time.Minute, LedgerLag: 1}},
		}
	})
	must(t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestMetricsAreListed: all instruments together record the listed metrics, with the listed units and labels, and no other.
func TestMetricsAreListed(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	recordAll(t, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("ddiff"))
	var all metricdata.ResourceMetrics
	must(t, reader.Collect(t.Context(), &all))
	recorded, list := map[string]bool{}, map[string]Metric{}
	for _, m := range Metrics() {
		list[m.Name] = m
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		recorded[m.Name] = true
		want, listed := list[m.Name]
		if !listed || m.Unit != want.Unit || m.Description != want.Description {
			t.Errorf("%s, unit %s, is not in the list", m.Name, m.Unit)
		}
		if h, ok := m.Data.(metricdata.Histogram[float64]); ok && !slices.Equal(h.DataPoints[0].Bounds, want.Bounds) {
			t.Errorf("%s has the bounds %v, want %v", m.Name, h.DataPoints[0].Bounds, want.Bounds)
		}
		for _, set := range attributeSets(m.Data) {
			for _, a := range set.ToSlice() {
				if !slices.Contains(want.Labels, a.Key) {
					t.Errorf("%s has the label %s, which is not in the list", m.Name, a.Key)
				}
			}
			if set.Len() != len(want.Labels) {
				t.Errorf("%s has the labels %v, want %v", m.Name, set.ToSlice(), want.Labels)
			}
		}
	}
	for _, m := range Metrics() {
		if !recorded[m.Name] {
			t.Errorf("%s is in the list, and nothing records it", m.Name)
		}
	}
}

// TestCountersOfEvents: a worker without any event exports the zeros, from which Prometheus computes the first increase.
func TestCountersOfEvents(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	_, err := NewInstruments(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("ddiff"))
	must(t, err)
	var all metricdata.ResourceMetrics
	must(t, reader.Collect(t.Context(), &all))
	zeros := map[string]bool{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && len(sum.DataPoints) == 1 && sum.DataPoints[0].Value == 0 {
				zeros[m.Name] = true
			}
		}
	}
	for _, name := range []string{"ddiff.steps", "ddiff.redeliveries", "ddiff.retries", "ddiff.faults", "ddiff.suspensions"} {
		if !zeros[name] {
			t.Errorf("%s does not begin at 0: %v", name, zeros)
		}
	}
}

// attributeSets returns the labels of all series.
func attributeSets(data metricdata.Aggregation) (sets []attribute.Set) {
	switch d := data.(type) {
	case metricdata.Sum[int64]:
		return setsOf(d.DataPoints)
	case metricdata.Sum[float64]:
		return setsOf(d.DataPoints)
	case metricdata.Gauge[int64]:
		return setsOf(d.DataPoints)
	case metricdata.Gauge[float64]:
		return setsOf(d.DataPoints)
	case metricdata.Histogram[float64]:
		for _, p := range d.DataPoints {
			sets = append(sets, p.Attributes)
		}
	}
	return sets
}

func setsOf[N int64 | float64](points []metricdata.DataPoint[N]) (sets []attribute.Set) {
	for _, p := range points {
		sets = append(sets, p.Attributes)
	}
	return sets
}

// scrape reads the endpoint for Prometheus into the values of the series.
func scrape(t *testing.T, h http.Handler) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	series := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			series[line[:i]] = strings.TrimSpace(line[i+1:])
		}
	}
	return series
}

// TestPrometheus: the endpoint has all metrics by their names in the list, beside another exporter, and nothing counts twice.
func TestPrometheus(t *testing.T) {
	c := newCollector(t)
	setOTel(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL})
	without := start(t, Config{})
	if without.Metrics() != nil {
		t.Error("an endpoint without Config.Prometheus")
	}
	shutDown(t, without)
	tel := start(t, Config{Prometheus: true})
	recordAll(t, tel.Meter("ddiff"))
	for range 2 { // a scrape changes nothing
		series := scrape(t, tel.Metrics())
		for _, m := range Metrics() {
			name, err := m.PrometheusName()
			must(t, err)
			found := false
			for s := range series {
				base, _, _ := strings.Cut(s, "{")
				found = found || base == name || (m.Kind == KindHistogram && base == name+"_bucket")
			}
			if !found {
				t.Errorf("the endpoint lacks %s", name)
			}
		}
		for s, want := range map[string]string{
			`ddiff_items_total{outcome="done",task="hdr"}`:                          "3",
			`ddiff_item_duration_seconds_bucket{outcome="done",task="hdr",le="60"}`: "0",
			`ddiff_item_duration_seconds_bucket{outcome="done",task="hdr",le="90"}`: "1",
			`ddiff_queue_lag{pool="default"}`:                                       "6", `ddiff_leader`: "1", `ddiff_store_available`: "0",
			`ddiff_store_requests_total{error_type="unavailable",operation="get"}`: "1",
			`ddiff_campaign_items{campaign="demo",state="done"}`:                   "3",
		} {
			if series[s] != want {
				t.Errorf("%s = %q, want %s", s, series[s], want)
			}
		}
	}
	shutDown(t, tel)
	c.mu.Lock()
	defer c.mu.Unlock()
	if points := c.metrics["ddiff.items"].GetSum().GetDataPoints(); len(points) != 1 || points[0].GetAsInt() != 3 {
		t.Errorf("the collector got ddiff.items %v", points)
	}
}

// TestOpenMetrics: a scrape that accepts OpenMetrics gets the trace of a measurement, and the metrics of runtime and process.
func TestOpenMetrics(t *testing.T) {
	setOTel(t, nil)
	tel := start(t, Config{Prometheus: true, TraceFile: filepath.Join(t.TempDir(), "trace.jsonl")})
	defer shutDown(t, tel)
	in, err := NewInstruments(tel.Meter("ddiff"))
	must(t, err)
	ctx, span := tel.Tracer("ddiff").Start(t.Context(), "item")
	in.ItemDuration.Record(ctx, 1)
	span.End()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	request.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	w := httptest.NewRecorder()
	tel.Metrics().ServeHTTP(w, request)
	for _, want := range []string{
		`trace_id="` + span.SpanContext().TraceID().String() + `"`, "\ngo_goroutines ", "\nprocess_resident_memory_bytes ", "\nprocess_cpu_seconds_total ", "\n# EOF",
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the answer lacks %q:\n%s", want, w.Body)
		}
	}
}

// TestObservedSeriesEnd: after stop, no series of the cluster remains, and a campaign that ended has none.
func TestObservedSeriesEnd(t *testing.T) {
	setOTel(t, nil)
	tel := start(t, Config{Prometheus: true})
	defer shutDown(t, tel)
	c, err := NewCluster(tel.Meter("ddiff"))
	must(t, err)
	items := map[string]int{"pending": 1, "running": 2, "done": 3, "failed": 4, "dead": 5, "cancelled": 6}
	state := ClusterState{Campaigns: []CampaignState{{ID: "a", Rate: math.NaN(), Items: items}, {ID: "b", Items: items}}}
	for i := range 2 * maxCampaigns {
		state.Campaigns = append(state.Campaigns, CampaignState{ID: "n" + strings.Repeat("x", i), Items: items})
	}
	stop, err := c.Observe(func() ClusterState { return state })
	must(t, err)
	count := func(part string) (n int) {
		for s := range scrape(t, tel.Metrics()) {
			if strings.Contains(s, part) {
				n++
			}
		}
		return n
	}
	if n := count("ddiff_queue_pending{"); n != maxCampaigns {
		t.Errorf("%d campaigns have series, want %d", n, maxCampaigns)
	}
	if n := count("ddiff_campaign_items{"); n != maxCampaigns*len(items) || count("otel_metric_overflow") != 0 {
		t.Errorf("%d states of campaigns have series, want %d", n, maxCampaigns*len(items))
	}
	if count(`campaign="a"`) == 0 {
		t.Error("no series of campaign a")
	}
	state.Campaigns = state.Campaigns[1:]
	if n := count(`campaign="a"`); n != 0 {
		t.Errorf("%d series of an ended campaign", n)
	}
	state.Lags = map[string]int{"default": 0}
	if count("ddiff_queue_lag") != 1 {
		t.Error("no lag")
	}
	must(t, stop())
	if n := count("ddiff_"); n != 0 {
		t.Errorf("%d series of a former leader", n)
	}
}

package telemetry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	collectmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collecttraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	metricpb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector is an OTLP/HTTP receiver on loopback.
type collector struct {
	*httptest.Server

	mu      sync.Mutex
	spans   map[string]*tracepb.Span
	metrics map[string]*metricpb.Metric
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{spans: map[string]*tracepb.Span{}, metrics: map[string]*metricpb.Metric{}}
	receive := func(request proto.Message, store func()) http.HandlerFunc {
		return func(_ http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			c.mu.Lock()
			defer c.mu.Unlock()
			if err := errors.Join(err, proto.Unmarshal(body, request)); err != nil {
				t.Errorf("%s: %v", r.URL.Path, err)
				return
			}
			store()
		}
	}
	traces, metrics := &collecttraces.ExportTraceServiceRequest{}, &collectmetrics.ExportMetricsServiceRequest{}
	mux := http.NewServeMux()
	mux.Handle("POST /v1/traces", receive(traces, func() {
		for _, rs := range traces.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				for _, span := range ss.Spans {
					c.spans[span.Name] = span
				}
			}
		}
	}))
	mux.Handle("POST /v1/metrics", receive(metrics, func() {
		for _, rm := range metrics.ResourceMetrics {
			for _, sm := range rm.ScopeMetrics {
				for _, metric := range sm.Metrics {
					c.metrics[metric.Name] = metric
				}
			}
		}
	}))
	c.Server = httptest.NewServer(mux)
	t.Cleanup(c.Close)
	return c
}

// record records one span and a value of each instrument.
func record(t *testing.T, tel *Telemetry) {
	t.Helper()
	in, err := NewInstruments(tel.Meter("ddiff"))
	must(t, err)
	ctx, end := in.Stage(t.Context(), tel.Tracer("ddiff"), StageFetch, TaskKey.String("hdr"))
	in.Items.Add(ctx, 3)
	in.ItemDuration.Record(ctx, 12.5)
	in.Steps.Add(ctx, 100)
	in.StepDuration.Record(ctx, 0.004)
	in.StepDuration.Record(ctx, 4)
	in.BatchFill.Record(ctx, 0.75)
	in.Redeliveries.Add(ctx, 1)
	end(errors.New("no such object"), "missing")
}

func TestOTLPExport(t *testing.T) {
	c := newCollector(t)
	setOTel(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL})
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	tel := start(t, Config{TraceFile: path})
	record(t, tel)
	shutDown(t, tel)
	c.mu.Lock()
	defer c.mu.Unlock()

	span := c.spans[StageFetch]
	if span == nil {
		t.Fatalf("collector got spans %v, want %q", c.spans, StageFetch)
	}
	if span.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR || span.Status.GetMessage() != "no such object" ||
		len(span.Events) != 1 {
		t.Errorf("status %v, events %v", span.Status, span.Events)
	}
	if len(span.Attributes) != 2 || span.Attributes[0].Key != "task" || span.Attributes[1].Key != "error.type" {
		t.Errorf("span attributes %v", span.Attributes)
	}
	if inFile, _ := readSpans(t, path); inFile[StageFetch].Name == "" {
		t.Error("the trace file lacks the span")
	}

	for name, want := range map[string]int64{"ddiff.items": 3, "ddiff.steps": 100, "ddiff.redeliveries": 1} {
		points := c.metrics[name].GetSum().GetDataPoints()
		if len(points) != 1 || points[0].GetAsInt() != want || !c.metrics[name].GetSum().IsMonotonic {
			t.Errorf("%s: %v, want %d", name, c.metrics[name], want)
		}
	}
	for name, count := range map[string]uint64{
		"ddiff.item.duration": 1, "ddiff.step.duration": 2, "ddiff.stage.duration": 1,
	} {
		points := c.metrics[name].GetHistogram().GetDataPoints()
		if len(points) != 1 || points[0].Count != count || c.metrics[name].Unit != "s" {
			t.Errorf("%s is not a histogram of %d seconds: %v", name, count, c.metrics[name])
		}
	}
}

// acceptAll counts the connections to address.
func acceptAll(t *testing.T, address string) *atomic.Int64 {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("the default OTLP address is in use here: %v", err)
	}
	var count atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			count.Add(1)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	return &count
}

// TestExportersAreOptIn listens on the default addresses of OTLP exporters.
func TestExportersAreOptIn(t *testing.T) {
	tests := map[string]struct {
		variables map[string]string
		dials     bool
	}{
		"nothing set":         {nil, false},
		"none":                {map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}, false},
		"none overrides":      {map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, false},
		"disabled":            {map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"}, false},
		"protocol only":       {map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, false},
		"traces by name":      {map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, true},
		"traces by endpoint":  {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, true},
		"metrics by endpoint": {map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://127.0.0.1:4318/v1/metrics"}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			setOTel(t, test.variables)
			http4318, grpc4317 := acceptAll(t, "127.0.0.1:4318"), acceptAll(t, "127.0.0.1:4317")
			var log bytes.Buffer
			tel := start(t, Config{LogOutput: &log})
			record(t, tel)
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			err := tel.Shutdown(ctx)
			if dials := http4318.Load() + grpc4317.Load(); (dials > 0) != test.dials {
				t.Errorf("%d connections, want connections: %v", dials, test.dials)
			}
			if !test.dials && (err != nil || log.Len() > 0) {
				t.Errorf("shutdown: %v, log: %q; want no error and no log", err, log.String())
			}
		})
	}
}

// TestShutdownMeetsDeadline exports to a collector that never answers, and to a closed port.
func TestShutdownMeetsDeadline(t *testing.T) {
	release := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(release) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	closed := "http://" + listener.Addr().String()
	listener.Close()

	for name, endpoint := range map[string]string{"silent": silent.URL, "closed port": closed} {
		for _, protocol := range []string{"http/protobuf", "grpc"} {
			t.Run(name+" "+protocol, func(t *testing.T) {
				setOTel(t, map[string]string{
					"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
				})
				path := filepath.Join(t.TempDir(), "trace.jsonl")
				tel := start(t, Config{TraceFile: path, LogOutput: io.Discard})
				record(t, tel)
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				begin := time.Now()
				first := tel.Shutdown(ctx)
				if took := time.Since(begin); took > 5*time.Second {
					t.Errorf("shutdown took %v", took)
				}
				if again := tel.Shutdown(context.Background()); !errors.Is(again, first) {
					t.Errorf("second shutdown: %v, want %v", again, first)
				}
				if spans, _ := readSpans(t, path); len(spans) != 1 {
					t.Errorf("the trace file has %d spans, want 1", len(spans))
				}
			})
		}
	}
}

// lockedBuffer is a log output for concurrent writers.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func TestStartErrors(t *testing.T) {
	occupied := t.TempDir() // a directory instead of a file
	tests := map[string]struct {
		cfg       Config
		variables map[string]string
		want      string
	}{
		"log format":      {Config{LogFormat: "xml"}, nil, "LogFormat"},
		"trace file":      {Config{TraceFile: occupied}, nil, occupied},
		"trace exporter":  {Config{}, map[string]string{"OTEL_TRACES_EXPORTER": "carrier pigeon"}, "OTEL_TRACES_EXPORTER"},
		"metric exporter": {Config{}, map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_METRICS_EXPORTER": "fax"}, "OTEL_METRICS_EXPORTER"},
		"file, exporters": {Config{TraceFile: occupied}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, occupied},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			setOTel(t, test.variables)
			tel, err := Start(t.Context(), test.cfg)
			if err == nil {
				shutDown(t, tel)
				t.Fatal("started")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q does not name %s", err, test.want)
			}
		})
	}
}

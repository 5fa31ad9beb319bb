package testbed

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// collector is a running OpenTelemetry Collector. It writes spans and metrics to files, as OTLP/JSON lines.
type collector struct {
	*Process
	address, spans, metrics string
}

const collectorConfig = `receivers:
  otlp:
    protocols:
      http: {endpoint: %q}
processors:
  batch: {timeout: 100ms}
exporters:
  file/traces: {path: %q, append: true, flush_interval: 100ms}
  file/metrics: {path: %q, append: true, flush_interval: 100ms}
service:
  telemetry:
    metrics: {level: none}
    logs: {level: warn}
  pipelines:
    traces: {receivers: [otlp], processors: [batch], exporters: [file/traces]}
    metrics: {receivers: [otlp], processors: [batch], exporters: [file/metrics]}
`

// startCollector starts a collector with its files in dir.
func startCollector(ctx context.Context, program, dir string) (*collector, error) {
	address, err := FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	c := &collector{address: address, spans: filepath.Join(dir, "spans.jsonl"), metrics: filepath.Join(dir, "metrics.jsonl")}
	file := filepath.Join(dir, "collector.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, collectorConfig, address, c.spans, c.metrics), 0o644); err != nil {
		return nil, err
	}
	c.Process = NewProcess(dir, "collector", nil, program, "--config", "file:"+file)
	err = c.restart(ctx)
	return c, err
}

// restart starts the collector and waits until it listens.
func (c *collector) restart(ctx context.Context) error {
	if err := c.Start(); err != nil {
		return err
	}
	return poll(ctx, time.Minute, "the collector", func() (bool, error) {
		if !c.Running() {
			return false, fmt.Errorf("it has ended: %s", tail(c.Log()))
		}
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.address)
		if err != nil {
			return false, err
		}
		return true, conn.Close()
	})
}

// environment makes a process of ddiff export to the collector.
func (c *collector) environment() []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + c.address, "OTEL_BSP_SCHEDULE_DELAY=500", "OTEL_METRIC_EXPORT_INTERVAL=2000"}
}

// span is a span as the collector received it.
type span struct {
	Trace      string    `json:"traceId"`
	ID         string    `json:"spanId"`
	Parent     string    `json:"parentSpanId"`
	Name       string    `json:"name"`
	Kind       int       `json:"kind"`
	Start      nanotime  `json:"startTimeUnixNano"`
	Attributes attribute `json:"attributes"`
	Links      []struct {
		Trace string `json:"traceId"`
		ID    string `json:"spanId"`
	} `json:"links"`
	Status struct {
		Code int `json:"code"`
	} `json:"status"`
}

// The kinds of spans in OTLP.
const (
	kindClient   = 3
	kindProducer = 4
	kindConsumer = 5
)

// nanotime is a time in OTLP/JSON: nanoseconds as a string.
type nanotime struct{ time.Time }

// UnmarshalJSON implements json.Unmarshaler.
func (t *nanotime) UnmarshalJSON(data []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(data), `"`), 10, 64)
	t.Time = time.Unix(0, n)
	return err
}

// attribute are the attributes of a span, their values as text.
type attribute map[string]string

// UnmarshalJSON implements json.Unmarshaler.
func (a *attribute) UnmarshalJSON(data []byte) error {
	var list []struct {
		Key   string                     `json:"key"`
		Value map[string]json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	*a = attribute{}
	for _, e := range list {
		for _, v := range e.Value { // one: the type
			(*a)[e.Key] = strings.Trim(string(v), `"`)
		}
	}
	return nil
}

// received reads the spans that have arrived, without an incomplete last line.
func (c *collector) received() ([]span, error) {
	f, err := os.Open(c.spans)
	if err != nil {
		return nil, err
	}
	defer f.Close() // opened for reading
	var all []span
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return all, nil // the end, or a line that a killed collector has not completed
		}
		var data struct {
			Resources []struct {
				Scopes []struct {
					Spans []span `json:"spans"`
				} `json:"scopeSpans"`
			} `json:"resourceSpans"`
		}
		if json.Unmarshal(line, &data) != nil {
			continue // the rest of a line that a killed collector has not completed, with the next one
		}
		for _, r := range data.Resources {
			for _, s := range r.Scopes {
				all = append(all, s.Spans...)
			}
		}
	}
}

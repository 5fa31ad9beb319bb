package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// The lines of a trace file by the OTLP/JSON specification, independent of the encoder. Decoding is strict about types: an
// enum as text or an integer as a number fails.
type (
	tracesLine struct {
		ResourceSpans []struct {
			Resource struct {
				Attributes []keyValue `json:"attributes"`
			} `json:"resource"`
			ScopeSpans []struct {
				Scope struct {
					Name string `json:"name"`
				} `json:"scope"`
				Spans []spanLine `json:"spans"`
			} `json:"scopeSpans"`
		} `json:"resourceSpans"`
	}
	spanLine struct {
		TraceID      string     `json:"traceId"`
		SpanID       string     `json:"spanId"`
		ParentSpanID string     `json:"parentSpanId"`
		Name         string     `json:"name"`
		Kind         int        `json:"kind"`
		Start        string     `json:"startTimeUnixNano"`
		End          string     `json:"endTimeUnixNano"`
		Attributes   []keyValue `json:"attributes"`
		Events       []struct {
			Name string `json:"name"`
			Time string `json:"timeUnixNano"`
		} `json:"events"`
		Links []struct {
			TraceID string `json:"traceId"`
			SpanID  string `json:"spanId"`
		} `json:"links"`
		Status struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"status"`
	}
	keyValue struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
)

func readLines(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// readSpans returns the spans of a trace file by name and the resource of its last line.
func readSpans(t *testing.T, path string) (map[string]spanLine, []keyValue) {
	t.Helper()
	spans := make(map[string]spanLine)
	var resource []keyValue
	for i, text := range readLines(t, path) {
		var line tracesLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("line %d: %v\n%s", i+1, err, text)
		}
		for _, rs := range line.ResourceSpans {
			resource = rs.Resource.Attributes
			for _, ss := range rs.ScopeSpans {
				for _, span := range ss.Spans {
					spans[span.Name] = span
				}
			}
		}
	}
	return spans, resource
}

func value(t *testing.T, attributes []keyValue, key, kind string) any {
	t.Helper()
	for _, kv := range attributes {
		if kv.Key == key {
			return kv.Value[kind]
		}
	}
	t.Errorf("attribute %q is missing", key)
	return nil
}

func TestTraceFile(t *testing.T) {
	setOTel(t, map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=lab"})
	path := filepath.Join(t.TempDir(), "new", "trace.jsonl")
	tel := start(t, Config{Version: "1.2.3", TraceFile: path})
	tracer := tel.Tracer("ddiff/test")

	other, otherSpan := tracer.Start(t.Context(), "other")
	_ = other
	otherSpan.End()
	ctx, parent := tracer.Start(t.Context(), "item", trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithLinks(trace.Link{SpanContext: otherSpan.SpanContext()}))
	_, child := tracer.Start(ctx, "restore", trace.WithAttributes(
		attribute.Int64("steps", math.MaxInt64),
		attribute.Float64("residual", 0.25),
		attribute.String("task", "motion \"blur\"\n"),
		attribute.Bool("dual", true)))
	child.RecordError(errors.New("diverged"))
	child.SetStatus(codes.Error, "diverged")
	child.End()
	parent.SetStatus(codes.Ok, "")
	parent.End()
	shutDown(t, tel)

	spans, resource := readSpans(t, path)
	if len(spans) != 3 {
		t.Fatalf("%d spans in the file, want 3", len(spans))
	}
	item, restore := spans["item"], spans["restore"]
	if want := parent.SpanContext().TraceID().String(); item.TraceID != want || restore.TraceID != want {
		t.Errorf("trace ids %q and %q, want %q", item.TraceID, restore.TraceID, want)
	}
	if item.SpanID != parent.SpanContext().SpanID().String() || item.ParentSpanID != "" {
		t.Errorf("item: span %q parent %q", item.SpanID, item.ParentSpanID)
	}
	if restore.SpanID != child.SpanContext().SpanID().String() || restore.ParentSpanID != item.SpanID {
		t.Errorf("restore: span %q parent %q, want parent %q", restore.SpanID, restore.ParentSpanID, item.SpanID)
	}
	link := otherSpan.SpanContext()
	if len(item.Links) != 1 || item.Links[0].TraceID != link.TraceID().String() ||
		item.Links[0].SpanID != link.SpanID().String() {
		t.Errorf("links %+v, want %v", item.Links, link)
	}
	if item.Kind != int(tracepb.Span_SPAN_KIND_CONSUMER) || item.Status.Code != 1 {
		t.Errorf("item: kind %d status %+v", item.Kind, item.Status)
	}
	if restore.Status.Code != 2 || restore.Status.Message != "diverged" {
		t.Errorf("restore: status %+v", restore.Status)
	}
	if len(restore.Events) != 1 || restore.Events[0].Name != "exception" {
		t.Errorf("restore: events %+v", restore.Events)
	}
	for key, want := range map[string]struct {
		kind  string
		value any
	}{
		"steps":    {"intValue", "9223372036854775807"},
		"residual": {"doubleValue", 0.25},
		"task":     {"stringValue", "motion \"blur\"\n"},
		"dual":     {"boolValue", true},
	} {
		if got := value(t, restore.Attributes, key, want.kind); got != want.value {
			t.Errorf("attribute %s: %v, want %v", key, got, want.value)
		}
	}
	begin, err1 := strconv.ParseInt(restore.Start, 10, 64)
	end, err2 := strconv.ParseInt(restore.End, 10, 64)
	if err1 != nil || err2 != nil || begin > end || time.Since(time.Unix(0, begin)) > time.Hour {
		t.Errorf("restore: from %q to %q", restore.Start, restore.End)
	}
	for key, want := range map[string]string{
		"service.name": "ddiff", "service.version": "1.2.3",
		"deployment.environment.name": "lab",
	} {
		if got := value(t, resource, key, "stringValue"); got != want {
			t.Errorf("resource %s: %v, want %v", key, got, want)
		}
	}
	value(t, resource, "host.name", "stringValue")
	value(t, resource, "service.instance.id", "stringValue")
	value(t, resource, "process.pid", "intValue")
}

// TestTraceFileAppendsAfterIncompleteLine appends to the file of a killed process.
func TestTraceFileAppendsAfterIncompleteLine(t *testing.T) {
	setOTel(t, nil)
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	torn := `{"resourceSpans":[{"resou`
	must(t, os.WriteFile(path, []byte("{\"resourceSpans\":[]}\n"+torn), 0o644))
	for _, name := range []string{"first", "second"} {
		tel := start(t, Config{TraceFile: path})
		_, span := tel.Tracer("t").Start(t.Context(), name)
		span.End()
		shutDown(t, tel)
	}
	lines := readLines(t, path)
	if len(lines) != 4 {
		t.Fatalf("%d lines, want 4:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	if lines[1] != torn {
		t.Errorf("incomplete line became %q", lines[1])
	}
	for i, name := range map[int]string{2: "first", 3: "second"} {
		if !json.Valid([]byte(lines[i])) || !strings.Contains(lines[i], `"name":"`+name+`"`) {
			t.Errorf("line %d does not contain span %q: %s", i+1, name, lines[i])
		}
	}
}

func TestTraceFileConcurrentUploads(t *testing.T) {
	t.Parallel()
	const writers, uploads = 8, 50
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	var wg sync.WaitGroup
	for range writers {
		client := &fileClient{path: path}
		must(t, client.Start(t.Context()))
		wg.Go(func() {
			for range uploads {
				if err := client.UploadTraces(context.Background(), sampleSpans()); err != nil {
					t.Error(err)
				}
			}
			if err := client.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	lines := readLines(t, path)
	if len(lines) != writers*uploads {
		t.Errorf("%d lines, want %d", len(lines), writers*uploads)
	}
	for i, line := range lines {
		if line != lines[0] {
			t.Fatalf("line %d differs: %s", i+1, line)
		}
	}
	if !strings.Contains(lines[0], `"traceId":"000102030405060708090a0b0c0d0e0f"`) ||
		!strings.Contains(lines[0], `"spanId":"fffefdfcfbfaf9f8"`) {
		t.Errorf("ids are not hexadecimal: %s", lines[0])
	}
}

func sampleSpans() []*tracepb.ResourceSpans {
	return []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{
		TraceId: []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		SpanId:  []byte{0xff, 0xfe, 0xfd, 0xfc, 0xfb, 0xfa, 0xf9, 0xf8},
		Name:    "write",
		Attributes: []*commonpb.KeyValue{{Key: "psnr", Value: &commonpb.AnyValue{
			Value: &commonpb.AnyValue_DoubleValue{DoubleValue: math.Inf(1)}}}},
	}}}}}}
}

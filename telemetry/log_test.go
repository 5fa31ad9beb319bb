package telemetry

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
)

func TestLoggerCarriesSpan(t *testing.T) {
	setOTel(t, nil)
	var out bytes.Buffer
	tel := start(t, Config{LogFormat: LogJSON, LogOutput: &out})
	defer shutDown(t, tel)
	ctx, span := tel.Tracer("t").Start(t.Context(), "restore")
	defer span.End()
	tests := map[string]*slog.Logger{
		"plain":           tel.Logger,
		"with attributes": tel.Logger.With("worker", "w-0"),
	}
	for name, logger := range tests {
		t.Run(name, func(t *testing.T) {
			out.Reset()
			logger.InfoContext(ctx, "step", "t", 7)
			var record map[string]any
			if err := json.Unmarshal(out.Bytes(), &record); err != nil {
				t.Fatalf("%v: %s", err, out.String())
			}
			if record["trace_id"] != span.SpanContext().TraceID().String() ||
				record["span_id"] != span.SpanContext().SpanID().String() {
				t.Errorf("record %s lacks the ids of its span", out.String())
			}
		})
	}

	out.Reset()
	tel.Logger.InfoContext(t.Context(), "idle")
	if strings.Contains(out.String(), "trace_id") {
		t.Errorf("a record without a span has a trace_id: %s", out.String())
	}
}

func TestLoggerLevelAndText(t *testing.T) {
	setOTel(t, nil)
	var out bytes.Buffer
	tel := start(t, Config{LogOutput: &out, LogLevel: slog.LevelWarn})
	defer shutDown(t, tel)
	tel.Logger.Info("quiet")
	tel.Logger.Warn("loud", "item", 12)
	if got := out.String(); strings.Contains(got, "quiet") || !strings.Contains(got, "level=WARN msg=loud item=12") {
		t.Errorf("log: %q", got)
	}
}

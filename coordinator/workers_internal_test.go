package coordinator

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"ddiff/manifest"
)

// A worker whose stage hung does not count as live; the coordinator logs the stage once.
func TestHungWorkerIsNotLive(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	now := time.Now()
	cfg := Config{Now: func() time.Time { return now }, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	beat := manifest.Beat{Schema: manifest.RecordSchema, At: now}
	hung, old := beat, beat
	hung.Name, hung.Hung, old.At = "gpu-7", "stage solve took 15m0s", now.Add(-2*beatLife)
	var w workerCount
	warned := map[string]bool{}
	for range 2 {
		w.count(t.Context(), cfg, map[string]manifest.Beat{"a": beat, "b": hung, "c": old}, warned)
	}
	if w.live() != 1 {
		t.Errorf("%d live workers, want 1", w.live())
	}
	if n := strings.Count(log.String(), `worker=gpu-7 reason="stage solve took 15m0s"`); n != 1 {
		t.Errorf("the log is %q", log.String())
	}
}

package gpuworker_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"ddiff/gpuworker"
)

func TestTailStoresLastLines(t *testing.T) {
	t.Parallel()
	var shown bytes.Buffer
	tail := gpuworker.NewTail(slog.NewTextHandler(&shown, &slog.HandlerOptions{Level: slog.LevelError}))
	log := slog.New(tail)
	if got := tail.Lines("mine", true); len(got) != 0 {
		t.Errorf("lines before the first: %q", got)
	}
	log.Info("one line")
	if got := tail.Lines("mine", true); len(got) != 1 || !strings.HasSuffix(got[0], `level=INFO msg="one line"`) {
		t.Errorf("the only line: %q", got)
	}
	for i := range 600 {
		log.With("id", "other").Info("noise", "i", i)
	}
	mine := log.With("id", "mine", "campaign", "c", "trace_id", "t", "item", "name", "attempt", 2).WithGroup("g")
	for i := range 30 {
		mine.Warn("slow\nstep", "i", i)
	}
	log.Warn("the queue is gone")
	log.Debug("not stored")
	log.Error("shown", "id", "third")
	mine.Info(strings.Repeat("long ", 1000))

	lines := tail.Lines("mine", true)
	if len(lines) != 20 {
		t.Fatalf("%d lines, want 20: %q", len(lines), lines)
	}
	for i, line := range lines[:18] {
		if want := fmt.Sprintf(`level=WARN msg="slow\nstep" item=name attempt=2 g.i=%d`, 12+i); !strings.HasSuffix(line, want) {
			t.Errorf("line %d is %q, want %q at its end", i, line, want)
		}
	}
	if !strings.HasSuffix(lines[18], `level=WARN msg="the queue is gone"`) {
		t.Errorf("a line about no item is missing: %q", lines[18])
	}
	if len(lines[19]) > 520 {
		t.Errorf("a line of %d bytes", len(lines[19]))
	}
	if got := shown.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "shown") {
		t.Errorf("the next handler got %q", got)
	}
	if got := tail.Lines("third", true); len(got) != 2 || !strings.Contains(got[1], "level=ERROR msg=shown") {
		t.Errorf("lines of the third item: %q", got)
	}
	if got := tail.Lines("third", false); len(got) != 1 || !strings.HasSuffix(got[0], "level=ERROR msg=shown") {
		t.Errorf("lines about the third item only: %q", got)
	}
}

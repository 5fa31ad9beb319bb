package queue

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// TestServerLog: notices are debug messages, problems are warnings, and the first fatal message is the failure of the server.
func TestServerLog(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	l := &serverLog{logger: slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for level, writes := range map[string][]func(string, ...any){"DEBUG": {l.Noticef, l.Debugf, l.Tracef}, "WARN": {l.Warnf, l.Errorf}} {
		for i, write := range writes {
			text.Reset()
			write("message %d", i)
			if !strings.Contains(text.String(), "level="+level+" ") || !strings.Contains(text.String(), "message ") {
				t.Errorf("%s message %d: %q", level, i, text.String())
			}
		}
	}
	if err := l.failure(); err != nil {
		t.Errorf("failure %v before a fatal message", err)
	}
	l.Fatalf("fatal %s", "one")
	l.Fatalf("fatal %s", "two")
	if err := l.failure(); err == nil || err.Error() != "fatal one" || !strings.Contains(text.String(), "fatal two") {
		t.Errorf("failure %v, want the first message; the log is %q", err, text.String())
	}
}

package queue_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/queue"
)

// textLog is the text of a log that several goroutines write.
type textLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *textLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *textLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// logger returns a logger that writes to l.
func (l *textLog) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// TestReadingWithoutInterruption: a healthy read of several messages has no gaps, and logs nothing.
func TestReadingWithoutInterruption(t *testing.T) {
	t.Parallel()
	var log textLog
	q := newQueue(t, queue.Config{Logger: log.logger()})
	for _, id := range []string{"1", "2", "3"} {
		must(t, q.PublishResult(t.Context(), id, 0, nil))
	}
	if got := results(t, q, 3); len(got) != 3 {
		t.Errorf("results %v", got)
	}
	if text := log.String(); strings.Contains(text, "reading was interrupted") {
		t.Errorf("a healthy read logs\n%s", text)
	}
}

// handler is a slog.Handler that calls a function with each message.
type handler func(message string)

func (handler) Enabled(context.Context, slog.Level) bool { return true }

func (h handler) Handle(_ context.Context, r slog.Record) error {
	h(r.Message)
	return nil
}

func (h handler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h handler) WithGroup(string) slog.Handler      { return h }

// TestReadingWithoutServerSlowsDown: the pauses of a reader without progress grow.
func TestReadingWithoutServerSlowsDown(t *testing.T) {
	t.Parallel()
	s := serve(t, jetStream(t))
	log := make(chan time.Time, 5) // of interruptions
	nc := dial(t, s)
	q, err := queue.Open(t.Context(), nc, queue.Config{Campaign: "camp", Logger: slog.New(handler(func(message string) {
		if strings.HasPrefix(message, "reading was interrupted") {
			select {
			case log <- time.Now():
			default:
			}
		}
	}))})
	must(t, err)
	stopServer(s)
	waitFor(t, "the loss of the connection", func() bool { return !nc.IsConnected() })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for r, err := range q.Results(ctx, 0) {
			t.Errorf("result %s, %v, want none", r.ID, err)
		}
	}()
	first := <-log
	for range 3 {
		<-log
	}
	last := <-log
	cancel()
	<-ended
	// The pauses are at least half of 50, 100, 200 and 400 ms; at the beginning they are at most 50 ms.
	if took := last.Sub(first); took < 375*time.Millisecond {
		t.Errorf("four pauses take only %v", took)
	}
}

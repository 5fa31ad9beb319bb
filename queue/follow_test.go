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

// TestReadingWithoutInterruption: a healthy read of several messages has no gaps, and logs nothing. Each result has the number
// of results after it.
func TestReadingWithoutInterruption(t *testing.T) {
	t.Parallel()
	var log textLog
	q := newQueue(t, queue.Config{Logger: log.logger()})
	for _, id := range []string{"1", "2", "3"} {
		must(t, q.PublishResult(t.Context(), id, 0, nil))
	}
	want := uint64(2)
	for r, err := range q.Results(t.Context(), 0) {
		must(t, err)
		if r.Behind != want {
			t.Errorf("result %s is %d behind, want %d", r.ID, r.Behind, want)
		}
		if want == 0 {
			break
		}
		want--
	}
	if text := log.String(); strings.Contains(text, "reading was interrupted") {
		t.Errorf("a healthy read logs\n%s", text)
	}
}

// TestReadingWithoutServerSlowsDown: the pauses of a reader without progress grow.
func TestReadingWithoutServerSlowsDown(t *testing.T) {
	t.Parallel()
	s := serve(t, jetStream(t))
	var log textLog
	nc := dial(t, s)
	q := openOn(t, nc, queue.Config{Logger: log.logger()})
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
	interruptions := func(n int) func() bool {
		return func() bool { return strings.Count(log.String(), "reading was interrupted") >= n }
	}
	waitFor(t, "the first interruption", interruptions(1))
	begin := time.Now()
	waitFor(t, "four more", interruptions(5))
	took := time.Since(begin)
	cancel()
	<-ended
	// The pauses are at least half of 50, 100, 200 and 400 ms, and the first two may be over when the first is seen.
	if took < 250*time.Millisecond {
		t.Errorf("four pauses take only %v", took)
	}
}

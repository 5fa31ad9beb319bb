package queue_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

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

// watched is a connection that shows what it carries, before it writes it or passes it on.
type watched struct {
	net.Conn
	read, write func(data []byte)
}

// Read implements net.Conn.
func (w *watched) Read(data []byte) (int, error) {
	n, err := w.Conn.Read(data)
	w.read(data[:n])
	return n, err
}

// Write implements net.Conn.
func (w *watched) Write(data []byte) (int, error) {
	w.write(data)
	return w.Conn.Write(data)
}

// watchedBoard returns a board with the record a.1 over a connection that shows what it carries, and the stream of
// the board.
func watchedBoard(t *testing.T, read, write func(data []byte)) (*queue.Board, jetstream.Stream) {
	t.Helper()
	server := start(t, t.TempDir())
	nc, err := server.Connect()
	must(t, err)
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{}))
	board, err := queue.OpenBoard(t.Context(), nc)
	must(t, err)
	must(t, board.Put(t.Context(), "a.1", nil))
	js, err := jetstream.New(nc)
	must(t, err)
	stream, err := js.Stream(t.Context(), "KV_DDIFF_BOARD")
	must(t, err)
	shown, err := server.ConnectThrough(func(c net.Conn) net.Conn { return &watched{c, read, write} })
	must(t, err)
	reader, err := queue.OpenBoard(t.Context(), shown)
	must(t, err)
	return reader, stream
}

// TestKeysWithoutCountedRecord removes a record after the server has counted it and before it delivers it: the list is
// complete without it.
func TestKeysWithoutCountedRecord(t *testing.T) {
	t.Parallel()
	var stream jetstream.Stream
	purge := sync.OnceFunc(func() {
		if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject("$KV.DDIFF_BOARD.a.*")); err != nil {
			t.Errorf("Purge: %v", err)
		}
	})
	var board *queue.Board
	board, stream = watchedBoard(t, func([]byte) {}, func(data []byte) {
		if bytes.Contains(data, []byte("CONSUMER.MSG.NEXT.KV_DDIFF_BOARD")) {
			purge()
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	keys, err := board.Keys(ctx, "a.")
	if err != nil || len(keys) != 0 {
		t.Errorf("keys %q, %v, want none", keys, err)
	}
}

// TestKeysWithLateRecord delays a record until the reader asks whether there are more: it is still in the list.
func TestKeysWithLateRecord(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	ask := sync.OnceFunc(func() { close(asked) })
	board, _ := watchedBoard(t, func(data []byte) {
		if !bytes.Contains(data, []byte("$KV.DDIFF_BOARD.a.1")) {
			return
		}
		select {
		case <-asked:
		case <-time.After(patience):
			t.Error("the reader does not ask")
		}
	}, func(data []byte) {
		if bytes.Contains(data, []byte("CONSUMER.INFO.KV_DDIFF_BOARD")) {
			ask()
		}
	})
	keys, err := board.Keys(t.Context(), "a.")
	if err != nil || len(keys) != 1 {
		t.Errorf("keys %q, %v, want one", keys, err)
	}
}

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

// interruptions has the times of interruptions in a log.
type interruptions chan time.Time

func (i interruptions) Enabled(context.Context, slog.Level) bool { return true }

func (i interruptions) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "reading was interrupted") {
		select {
		case i <- time.Now():
		default:
		}
	}
	return nil
}

func (i interruptions) WithAttrs([]slog.Attr) slog.Handler { return i }
func (i interruptions) WithGroup(string) slog.Handler      { return i }

// TestReadingWithoutServerSlowsDown: the pauses of a reader without progress grow.
func TestReadingWithoutServerSlowsDown(t *testing.T) {
	t.Parallel()
	s := serve(t, jetStream(t))
	log := make(interruptions, 5)
	nc := dial(t, s)
	q, err := queue.Open(t.Context(), nc, queue.Config{Campaign: "camp", Logger: slog.New(log)})
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

package queue_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ddiff/internal/queue"
)

func TestResultsFollow(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{})
	const n = 20
	for i := range n / 2 {
		must(t, q.PublishResult(t.Context(), fmt.Sprint(i), 0, fmt.Append(nil, "result ", i)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var got []string
	for r, err := range q.Results(ctx, 0) {
		must(t, err)
		if want := "result " + r.ID; string(r.Payload) != want {
			t.Fatalf("result %s is %q", r.ID, r.Payload)
		}
		// After the first half, each result triggers the publish of the next.
		if got = append(got, r.ID); len(got) >= n/2 && len(got) < n {
			id := fmt.Sprint(len(got))
			must(t, q.PublishResult(t.Context(), id, 0, []byte("result "+id)))
		}
		if len(got) == n {
			cancel()
		}
	}
	want := make([]string, n)
	for i := range want {
		want[i] = fmt.Sprint(i)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("results %v, want %v", got, want)
	}
}

// TestFullResultStream expects that a full result stream discards nothing, and that a publisher waits for space.
func TestFullResultStream(t *testing.T) {
	t.Parallel()
	nc := dial(t, serve(t, jetStream(t)))
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{MaxResults: 3}))
	q := openOn(t, nc, queue.Config{Campaign: "full"})
	for i := range 3 {
		must(t, q.PublishResult(t.Context(), fmt.Sprint(i), 0, nil))
	}
	usage, err := queue.Usage(t.Context(), nc)
	must(t, err)
	if u := usage[1]; u.Name != "DDIFF_RESULT" || u.Fill() != 1 {
		t.Errorf("%+v", u)
	}
	short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	mustBe(t, q.PublishResult(short, "3", 0, nil), queue.ErrFull)
	long, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- q.PublishResult(long, "4", 0, nil) }()
	last, err := q.LastResult(t.Context())
	must(t, err)
	must(t, q.PurgeResults(t.Context(), last-2)) // the first one
	must(t, <-ended)
	var ids []string
	for r, err := range q.Results(t.Context(), 0) {
		must(t, err)
		if ids = append(ids, r.ID); len(ids) == 3 {
			break
		}
	}
	if !slices.Equal(ids, []string{"1", "2", "4"}) {
		t.Errorf("results %v", ids)
	}
	// A lower limit drops nothing either.
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{MaxResults: 1}))
	if usage, err := queue.Usage(t.Context(), nc); err != nil || usage[1].Messages != 3 || usage[1].MaxMessages != 1 {
		t.Errorf("%+v, %v", usage, err)
	}
}

// TestRepeatedOutcomeIsNotNew: an outcome that another worker, or the same one, has published is not new; that of another
// item or round is.
func TestRepeatedOutcomeIsNotNew(t *testing.T) {
	t.Parallel()
	q := open(t, start(t, t.TempDir()), queue.Config{AckWait: shortWait, MaxAttempts: 3})
	must(t, publish(t.Context(), q, "class", "1", nil))
	first := lease(t, q)
	outcome := func(l *queue.Lease, want bool) {
		t.Helper()
		isNew, err := l.PublishOutcome(t.Context(), []byte("done"))
		must(t, err)
		if isNew != want {
			t.Errorf("outcome of item %s, attempt %d: new is %v, want %v", l.ID(), l.Attempt(), isNew, want)
		}
	}
	outcome(first, true)
	outcome(first, false)
	again := lease(t, q) // the first lease has expired
	if again.Attempt() != 2 {
		t.Fatalf("attempt %d", again.Attempt())
	}
	outcome(again, false)
	must(t, again.Ack(t.Context()))
	must(t, publish(t.Context(), q, "class", "2", nil))
	outcome(lease(t, q), true)
}

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

// connectDenied connects as a user that may publish on all subjects but one, to a server with the streams.
func connectDenied(t *testing.T, subject string) *nats.Conn {
	t.Helper()
	o := jetStream(t)
	o.Users = []*server.User{{Username: "user", Password: "right", Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{Allow: []string{">"}, Deny: []string{subject}},
	}}}
	nc, err := queue.Connect(t.Context(), queue.ConnectConfig{URL: strings.Replace(serve(t, o).ClientURL(), "://", "://user:right@", 1)})
	must(t, err)
	t.Cleanup(nc.Close)
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{}))
	return nc
}

// TestReadingWithoutPermission: a reader that may create a consumer, and not ask for its messages, ends with the missing permission.
func TestReadingWithoutPermission(t *testing.T) {
	t.Parallel()
	const subject = "$JS.API.CONSUMER.MSG.NEXT.DDIFF_RESULT"
	q := openOn(t, connectDenied(t, subject+".*"), queue.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var refusal error
	for _, err := range q.Results(ctx, 0) {
		refusal = err
	}
	mustBe(t, refusal, queue.ErrAccess)
	if !strings.Contains(refusal.Error(), subject) {
		t.Errorf("%v does not name the subject", refusal)
	}
}

// TestReadingBesideRefusedCall: a reader that loses its consumer goes on, also if the server has refused another call of the connection.
func TestReadingBesideRefusedCall(t *testing.T) {
	t.Parallel()
	nc := connectDenied(t, "another")
	q := openOn(t, nc, queue.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	read := make(chan error, 1)
	go func() {
		for _, err := range q.Results(ctx, 0) {
			read <- err
			return
		}
	}()
	js, err := jetstream.New(nc)
	must(t, err)
	stream, err := js.Stream(ctx, "DDIFF_RESULT")
	must(t, err)
	var reader string
	waitFor(t, "the reader", func() bool {
		for c := range stream.ListConsumers(ctx).Info() {
			if c.NumWaiting > 0 {
				reader = c.Name
			}
		}
		return reader != ""
	})
	must(t, nc.Publish("another", nil))
	must(t, nc.Flush())
	mustBe(t, nc.LastError(), nats.ErrPermissionViolation)
	must(t, stream.DeleteConsumer(ctx, reader))
	must(t, q.PublishResult(ctx, "1", 0, nil))
	must(t, <-read)
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

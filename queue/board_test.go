package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"ddiff/queue"
)

// newBoard starts an embedded server and opens its board over two connections.
func newBoard(t *testing.T) (one, other *queue.Board, nc *nats.Conn) {
	t.Helper()
	server := start(t, t.TempDir())
	nc = join(t, server)
	_, err := queue.OpenBoard(t.Context(), nc)
	mustBe(t, err, queue.ErrNotReady)
	if !strings.Contains(err.Error(), "start a coordinator") {
		t.Errorf("error %q names no remedy", err)
	}
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{}))
	one = openBoard(t, nc)
	second := join(t, server)
	other = openBoard(t, second)
	return one, other, nc
}

func TestBoard(t *testing.T) {
	t.Parallel()
	b, other, _ := newBoard(t)
	ctx := t.Context()
	_, _, err := b.Get(ctx, "campaign.a")
	mustBe(t, err, queue.ErrNoRecord)
	must(t, b.Delete(ctx, "campaign.a"))
	_, err = b.Update(ctx, "campaign.a", []byte("x"), 7)
	mustBe(t, err, queue.ErrConflict)
	first, err := b.Create(ctx, "campaign.a", []byte("1"))
	must(t, err)
	_, err = other.Create(ctx, "campaign.a", []byte("2"))
	mustBe(t, err, queue.ErrRecordExists)
	second, err := other.Update(ctx, "campaign.a", []byte("2"), first)
	must(t, err)
	if second <= first {
		t.Errorf("revision %d after %d", second, first)
	}
	_, err = b.Update(ctx, "campaign.a", []byte("3"), first)
	mustBe(t, err, queue.ErrConflict)
	data, revision, err := b.Get(ctx, "campaign.a")
	must(t, err)
	if string(data) != "2" || revision != second {
		t.Errorf("record is %q at %d, want 2 at %d", data, revision, second)
	}
	must(t, b.Put(ctx, "campaign.b="+queue.Token("é."), nil))
	must(t, b.Put(ctx, "cluster", []byte("c")))
	must(t, b.Delete(ctx, "campaign.a"))
	_, _, err = other.Get(ctx, "campaign.a")
	mustBe(t, err, queue.ErrNoRecord)
	for prefix, want := range map[string][]string{
		"": {"campaign.b==C3=A9=2E", "cluster"}, "campaign.": {"campaign.b==C3=A9=2E"}, "cluster": {"cluster"}, "status.": nil, "campaign": nil,
	} {
		keys, err := other.Keys(ctx, prefix)
		must(t, err)
		if !slices.Equal(keys, want) {
			t.Errorf("keys with %q are %q, want %q", prefix, keys, want)
		}
	}
	_, err = b.Create(ctx, "campaign.a", []byte("anew"))
	must(t, err)
	for _, key := range []string{"", "a b", "a*", "a.>", ".a", "a..b", "a."} {
		mustBe(t, b.Put(ctx, key, nil), queue.ErrBadName)
		_, _, err := b.Get(ctx, key)
		mustBe(t, err, queue.ErrBadName)
	}
	_, err = b.Keys(ctx, "*")
	mustBe(t, err, queue.ErrBadName)
	mustBe(t, b.Put(ctx, "large", make([]byte, queue.MaxRecordBytes+1)), queue.ErrTooLarge)
	_, err = b.Create(ctx, "large", make([]byte, queue.MaxRecordBytes+1))
	mustBe(t, err, queue.ErrTooLarge)
	must(t, b.Put(ctx, "large", make([]byte, queue.MaxRecordBytes)))
	revision, err = b.Create(ctx, "larger", make([]byte, queue.MaxRecordBytes))
	must(t, err)
	_, err = b.Update(ctx, "larger", make([]byte, queue.MaxRecordBytes+1), revision)
	mustBe(t, err, queue.ErrTooLarge)
	// The end of a context is its error, and not its cause or a lack of answers.
	ended, cancel := context.WithCancelCause(ctx)
	cancel(queue.ErrNoRecord)
	if err := b.Put(ended, "small", nil); !errors.Is(err, context.Canceled) || errors.Is(err, queue.ErrUnavailable) || errors.Is(err, queue.ErrNoRecord) {
		t.Errorf("a write after the end of its context: %v", err)
	}
}

func TestConcurrentUpdatesLoseNoWrite(t *testing.T) {
	t.Parallel()
	b, other, _ := newBoard(t)
	_, err := b.Create(t.Context(), "n", []byte("0"))
	must(t, err)
	const writers, steps = 4, 25
	var wg sync.WaitGroup
	for i := range writers {
		b := []*queue.Board{b, other}[i%2]
		wg.Go(func() {
			for range steps {
				for {
					data, revision, err := b.Get(t.Context(), "n")
					var n int
					if err == nil {
						_, err = fmt.Sscan(string(data), &n)
					}
					if err != nil {
						t.Errorf("read: %v", err)
						return
					}
					if _, err = b.Update(t.Context(), "n", fmt.Append(nil, n+1), revision); err == nil {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	data, _, err := other.Get(t.Context(), "n")
	must(t, err)
	if string(data) != fmt.Sprint(writers*steps) {
		t.Errorf("the record is %s, want %d", data, writers*steps)
	}
}

func TestBoardWatch(t *testing.T) {
	t.Parallel()
	b, other, _ := newBoard(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, other.Put(ctx, "campaign.a", []byte("1")))
	must(t, other.Put(ctx, "campaign.a", []byte("2")))
	must(t, other.Put(ctx, "campaign.gone", []byte("1")))
	must(t, other.Delete(ctx, "campaign.gone"))
	must(t, other.Put(ctx, "status.a", nil))
	var got []string
	for c, err := range b.Watch(ctx, "campaign.") {
		must(t, err)
		switch {
		case c.Ready:
			got = append(got, "ready")
			must(t, other.Put(ctx, "campaign.b", []byte("3")))
			must(t, other.Put(ctx, "status.b", nil))
			must(t, other.Delete(ctx, "campaign.a"))
		case c.Deleted && len(c.Data) == 0:
			got = append(got, "no "+c.Key)
		default:
			got = append(got, c.Key+" "+string(c.Data))
			if _, revision, err := b.Get(ctx, c.Key); err != nil || revision != c.Revision {
				t.Errorf("revision of %s is %d, want %d (%v)", c.Key, c.Revision, revision, err)
			}
		}
		if len(got) == 5 {
			break
		}
	}
	if want := []string{"campaign.a 2", "no campaign.gone", "ready", "campaign.b 3", "no campaign.a"}; !slices.Equal(got, want) {
		t.Errorf("changes %q, want %q", got, want)
	}
	// An empty board is ready at once; the end of the context is no error.
	for c, err := range b.Watch(ctx, "nothing.") {
		must(t, err)
		if !c.Ready {
			t.Errorf("change %+v on an empty board", c)
		}
		cancel()
	}
	// The deletion of the board ends the watch with an error.
	_, lost, nc := newBoard(t)
	js := streamsOf(t, nc)
	for _, err := range lost.Watch(t.Context(), "") {
		if err == nil {
			must(t, js.DeleteStream(t.Context(), "KV_DDIFF_BOARD"))
			continue
		}
		mustBe(t, err, queue.ErrNotReady)
	}
	mustBe(t, lost.Put(t.Context(), "a", nil), queue.ErrNotReady)
}

// TestReadersResumeAfterServerRestart restarts the server twice during a watch, a read of results and a worker.
func TestReadersResumeAfterServerRestart(t *testing.T) {
	t.Parallel()
	o := jetStream(t)
	s := serve(t, o)
	nc, writer := dial(t, s), dial(t, s)
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{}))
	q := openOn(t, writer, queue.Config{Campaign: "camp"})
	reader := attach(t, nc, queue.Config{Campaign: "camp"})
	b := openBoard(t, nc)
	notes := openBoard(t, writer)

	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	seen, changes := make(chan string, 100), make(chan string, 100)
	var wg sync.WaitGroup
	wg.Go(func() {
		for r, err := range reader.Results(ctx, 0) {
			seen <- fmt.Sprintf("%s %v", r.ID, err)
		}
	})
	wg.Go(func() {
		for c, err := range b.Watch(ctx, "n") {
			changes <- fmt.Sprintf("%s %t %v", c.Data, c.Ready, err)
		}
	})
	expect(t, changes, " true <nil>")
	for i := range 3 {
		if i > 0 {
			s = restart(t, s, o, 500*time.Millisecond)
		}
		// The first calls after a restart find the server down or not ready.
		must(t, notes.Put(ctx, "n", fmt.Append(nil, i)))
		must(t, q.PublishResult(ctx, fmt.Sprint(i), 0, nil))
		must(t, publish(ctx, q, "c", fmt.Sprint(i), nil))
		expect(t, seen, fmt.Sprint(i, " <nil>"))
		expect(t, changes, fmt.Sprint(i, " false <nil>"))
		must(t, lease(t, reader).Ack(ctx))
	}
	cancel()
	wg.Wait()
	close(seen)
	close(changes)
	for extra := range seen {
		t.Errorf("result %s is repeated", extra)
	}
	for extra := range changes {
		t.Errorf("change %s is repeated", extra)
	}
}

func expect(t *testing.T, c <-chan string, want string) {
	t.Helper()
	select {
	case got := <-c:
		if got != want {
			t.Fatalf("received %q, want %q", got, want)
		}
	case <-time.After(patience):
		t.Fatalf("no %q within %v", want, patience)
	}
}

func TestCallsTimeOutWithoutServer(t *testing.T) {
	t.Parallel()
	s := serve(t, jetStream(t))
	q := openOn(t, dial(t, s), queue.Config{Campaign: "camp", Timeout: 500 * time.Millisecond})
	must(t, publish(t.Context(), q, "c", "1", nil))
	held := lease(t, q)
	stopServer(s)
	for what, err := range map[string]error{
		"publish": publish(t.Context(), q, "c", "2", nil), "batch": q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "2"}}),
		"result": held.PublishResult(t.Context(), nil), "ack": held.Ack(t.Context()), "pause": q.Pause(t.Context()),
	} {
		if err == nil {
			t.Errorf("%s succeeds without a server", what)
			continue
		}
		mustBe(t, err, queue.ErrUnavailable)
	}
	_, err := q.Lease(t.Context(), 1, 100*time.Millisecond)
	mustBe(t, err, queue.ErrUnavailable)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	for r, err := range q.Results(ctx, 0) {
		t.Errorf("result %s, %v, want none", r.ID, err)
	}
}

package queue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ddiff/internal/queue"
)

// newBoard starts an embedded server and opens its board over two connections.
func newBoard(t *testing.T) (one, other *queue.Board, nc *nats.Conn) {
	t.Helper()
	server := start(t, t.TempDir())
	nc = join(t, server)
	_, err := queue.OpenBoard(t.Context(), nc, nil)
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

// watched is a connection that shows what it carries, before it writes it.
type watched struct {
	net.Conn
	write func(data []byte)
}

// Write implements net.Conn.
func (w *watched) Write(data []byte) (int, error) {
	w.write(data)
	return w.Conn.Write(data)
}

// watchedBoard returns a board with the record a.1 over a connection that shows what it writes, the board over another
// connection, and its stream.
func watchedBoard(t *testing.T, write func(data []byte)) (shown, plain *queue.Board, stream jetstream.Stream) {
	t.Helper()
	server := start(t, t.TempDir())
	nc := join(t, server)
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{}))
	plain = openBoard(t, nc)
	must(t, plain.Put(t.Context(), "a.1", nil))
	js := streamsOf(t, nc)
	stream, err := js.Stream(t.Context(), "KV_DDIFF_BOARD")
	must(t, err)
	through, err := server.ConnectThrough(func(c net.Conn) net.Conn { return &watched{c, write} })
	must(t, err)
	shown = openBoard(t, through)
	return shown, plain, stream
}

// TestKeysWithoutCountedRecord removes a record after the server has counted it and before it is read: the list is
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
	board, _, stream = watchedBoard(t, func(data []byte) {
		if bytes.Contains(data, []byte("STREAM.MSG.GET.KV_DDIFF_BOARD")) {
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

// TestWatchDuringList changes a record and writes another one while the first records are read: each new state is seen once.
func TestWatchDuringList(t *testing.T) {
	t.Parallel()
	var writer *queue.Board
	write := sync.OnceFunc(func() {
		for _, key := range []string{"a.1", "a.2"} {
			if err := writer.Put(t.Context(), key, []byte("late")); err != nil {
				t.Errorf("Put: %v", err)
			}
		}
	})
	var reader *queue.Board
	reader, writer, _ = watchedBoard(t, func(data []byte) {
		if bytes.Contains(data, []byte("STREAM.MSG.GET.KV_DDIFF_BOARD")) {
			write()
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var got []string
	for c, err := range reader.Watch(ctx, "a.") {
		must(t, err)
		got = append(got, fmt.Sprintf("%s %s %t", c.Key, c.Data, c.Ready))
		if c.Ready {
			must(t, writer.Put(ctx, "a.3", nil))
		}
		if c.Key == "a.3" {
			break
		}
	}
	if want := []string{"a.1 late false", "  true", "a.2 late false", "a.3  false"}; !slices.Equal(got, want) {
		t.Errorf("changes %q, want %q", got, want)
	}
}

// TestWatchYieldsInOrder: the records that exist come in the order in which they were written.
func TestWatchYieldsInOrder(t *testing.T) {
	t.Parallel()
	b, other, _ := newBoard(t)
	var want []string
	for i := range 100 {
		want = append(want, fmt.Sprintf("a.%d", i*37%100))
		must(t, b.Put(t.Context(), want[i], nil))
	}
	var got []string
	for c, err := range other.Watch(t.Context(), "a.") {
		must(t, err)
		if c.Ready {
			break
		}
		got = append(got, c.Key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("records %q, want %q", got, want)
	}
}

// TestWatchReadsQuickChangesTogether: a watch reads at most five times a second, lists the records once, and sees the last state.
func TestWatchReadsQuickChangesTogether(t *testing.T) {
	t.Parallel()
	const pause, last = 200 * time.Millisecond, "199"
	var lists, requests atomic.Int64
	reader, writer, _ := watchedBoard(t, func(data []byte) {
		lists.Add(int64(bytes.Count(data, []byte("PUB $JS.API.STREAM.INFO.KV_DDIFF_BOARD"))))
		requests.Add(int64(bytes.Count(data, []byte("PUB $JS.API.STREAM.MSG.GET.KV_DDIFF_BOARD"))))
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	begin, changes, listed := time.Now(), int64(0), int64(0)
	var writing sync.WaitGroup
	for c, err := range reader.Watch(ctx, "a.1") {
		must(t, err)
		if c.Ready {
			listed = lists.Load()
			writing.Go(func() {
				for i := range 200 {
					if err := writer.Put(ctx, "a.1", fmt.Append(nil, i)); err != nil {
						t.Errorf("Put: %v", err)
					}
				}
			})
		}
		if changes++; string(c.Data) == last {
			break
		}
	}
	writing.Wait() // the reader may see the last record before its writer has the answer
	must(t, ctx.Err())
	if n := lists.Load() - listed; n != 0 {
		t.Errorf("%d further requests for the list", n)
	}
	// A read asks for one record, and then for more. A change may arrive between the two.
	if reads := int64(time.Since(begin)/pause) + 2; requests.Load() > 3*reads+2 {
		t.Errorf("%d requests and %d changes in %v", requests.Load(), changes, time.Since(begin))
	}
}

// TestWatchSeesChangeAtOnce: a notice is faster than the next poll, for every role.
func TestWatchSeesChangeAtOnce(t *testing.T) {
	t.Parallel()
	s := serveRoles(t)
	coordinator := connect(t, s, "coordinator")
	must(t, queue.Setup(t.Context(), coordinator, queue.SetupConfig{}))
	writer := openBoard(t, coordinator)
	for _, role := range []string{"coordinator", "worker"} {
		reader := openBoard(t, connect(t, s, role))
		var times []time.Duration
		var written time.Time
		n := 0
		for c, err := range reader.Watch(t.Context(), role+".") {
			must(t, err)
			if !c.Ready {
				times = append(times, time.Since(written))
			}
			if n++; n > 3 {
				break
			}
			written = time.Now()
			must(t, writer.Put(t.Context(), role+".1", fmt.Append(nil, n)))
		}
		// Polls alone take at least 3.75 s each.
		if slices.Sort(times); times[len(times)/2] > 2*time.Second {
			t.Errorf("a %s sees changes after %v", role, times)
		}
	}
}

// TestWatchAfterLostWrites restores the files of a server from a copy while a watch runs: the sequence numbers of the last
// writes are used again. The watch yields the lost record as deleted, the record that went back, and new records.
func TestWatchAfterLostWrites(t *testing.T) {
	t.Parallel()
	o := jetStream(t)
	s := serve(t, o)
	o.Port = s.Addr().(*net.TCPAddr).Port
	nc := dial(t, s)
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{}))
	b := openBoard(t, nc)
	for _, key := range []string{"a.same", "a.back", "b.same"} {
		must(t, b.Put(t.Context(), key, []byte("old")))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	type change struct{ key, data string }
	seen := make(chan change, 100)
	go func() {
		defer close(seen)
		for c, err := range b.Watch(ctx, "a.") {
			if err != nil {
				t.Errorf("Watch: %v", err)
			}
			data := string(c.Data)
			if c.Deleted {
				data = "deleted"
			}
			seen <- change{c.Key, data}
		}
	}()
	next := func(want ...change) {
		t.Helper()
		for i := range want {
			select {
			case got := <-seen:
				found := false
				for j := i; j < len(want) && !found; j++ {
					if found = want[j] == got; found {
						want[i], want[j] = want[j], want[i]
					}
				}
				if !found {
					t.Errorf("change %q, want one of %q", got, want[i:])
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("no change, want one of %q", want[i:])
			}
		}
	}
	next(change{"a.same", "old"}, change{"a.back", "old"}, change{})
	backup := t.TempDir()
	stopServer(s)
	must(t, os.CopyFS(backup, os.DirFS(o.StoreDir)))
	s = serve(t, o)
	must(t, b.Put(t.Context(), "a.back", []byte("new")))
	next(change{"a.back", "new"})
	for range 100 {
		must(t, b.Put(t.Context(), "b.same", []byte("new")))
	}
	must(t, b.Put(t.Context(), "a.lost", []byte("new")))
	next(change{"a.lost", "new"})
	stopServer(s)
	must(t, os.RemoveAll(o.StoreDir))
	must(t, os.CopyFS(o.StoreDir, os.DirFS(backup)))
	s = serve(t, o)
	must(t, b.Put(t.Context(), "a.next", []byte("new")))
	next(change{"a.lost", "deleted"}, change{"a.back", "old"}, change{"a.next", "new"})

	// More records follow than were lost, before the watch asks again.
	backup = t.TempDir()
	stopServer(s)
	must(t, os.CopyFS(backup, os.DirFS(o.StoreDir)))
	s = serve(t, o)
	must(t, b.Put(t.Context(), "a.gone", []byte("new")))
	next(change{"a.gone", "new"})
	stopServer(s)
	must(t, os.RemoveAll(o.StoreDir))
	must(t, os.CopyFS(o.StoreDir, os.DirFS(backup)))
	elsewhere := jetStream(t) // another port
	elsewhere.StoreDir = o.StoreDir
	s = serve(t, elsewhere)
	other := openBoard(t, dial(t, s))
	want := []change{{"a.gone", "deleted"}}
	for i := range 4 {
		c := change{fmt.Sprintf("a.late%d", i), "new"}
		must(t, other.Put(t.Context(), c.key, []byte(c.data)))
		want = append(want, c)
	}
	stopServer(s)
	serve(t, o)
	next(want...)
}

// TestWatchOfNothingAcrossRestart restarts the server while a watch has seen no record.
func TestWatchOfNothingAcrossRestart(t *testing.T) {
	t.Parallel()
	o := jetStream(t)
	s := serve(t, o)
	nc := dial(t, s)
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{}))
	b := openBoard(t, nc)
	must(t, b.Put(t.Context(), "b.1", nil))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var got []string
	for c, err := range b.Watch(ctx, "a.") {
		must(t, err)
		if got = append(got, c.Key); c.Ready {
			restart(t, s, o, 0)
			waitFor(t, "the connection", nc.IsConnected)
			must(t, b.Put(ctx, "a.1", nil))
			must(t, b.Put(ctx, "a.2", nil))
		}
		if c.Key == "a.2" {
			break
		}
	}
	if want := []string{"", "a.1", "a.2"}; !slices.Equal(got, want) {
		t.Errorf("changes %q, want %q", got, want)
	}
}

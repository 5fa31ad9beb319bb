package queue_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"ddiff/queue"
)

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
	for _, role := range []string{"coordinator", "worker", "command"} {
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

package queue_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/queue"
)

// gate forwards connections to a server. When armed, it withholds the server's answers for a moment and then breaks the
// connection.
type gate struct {
	address string
	target  string
	armed   atomic.Bool
	lost    atomic.Int32
}

func newGate(t *testing.T, url string) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	g := &gate{address: l.Addr().String(), target: strings.TrimPrefix(url, "nats://")}
	var open sync.WaitGroup
	t.Cleanup(open.Wait)
	t.Cleanup(func() { must(t, l.Close()) })
	open.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { g.forward(client) })
		}
	})
	return g
}

func (g *gate) forward(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", g.target)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		data := make([]byte, 64<<10)
		for {
			n, err := client.Read(data)
			if err != nil {
				server.Close()
				return
			}
			if _, err := server.Write(data[:n]); err != nil {
				return
			}
		}
	}()
	data := make([]byte, 64<<10)
	for {
		n, err := server.Read(data)
		if err != nil {
			return
		}
		if g.armed.Load() {
			time.Sleep(50 * time.Millisecond) // other messages in flight arrive
			g.armed.Store(false)
			g.lost.Add(1)
			return
		}
		if _, err := client.Write(data[:n]); err != nil {
			return
		}
	}
}

// TestWritesSurviveLostAnswers loses the server's answer to every kind of write: each takes effect once and succeeds.
func TestWritesSurviveLostAnswers(t *testing.T) {
	t.Parallel()
	s := serve(t, jetStream(t))
	g := newGate(t, s.ClientURL())
	must(t, queue.Setup(t.Context(), dial(t, s), queue.SetupConfig{}))
	nc, err := queue.Connect(t.Context(), queue.ConnectConfig{URL: "nats://" + g.address})
	must(t, err)
	t.Cleanup(nc.Close)
	b := openBoard(t, nc)
	q := openOn(t, nc, queue.Config{Campaign: "camp"})
	var revision uint64
	var held *queue.Lease
	batch := make([]queue.Work, 50)
	for i := range batch {
		batch[i] = queue.Work{Class: "c", ID: fmt.Sprint("batch-", i)}
	}
	steps := []struct {
		name string
		do   func() error
	}{
		{"create a record", func() (err error) {
			revision, err = b.Create(t.Context(), "k", []byte("1"))
			return err
		}},
		{"update it", func() (err error) {
			revision, err = b.Update(t.Context(), "k", []byte("2"), revision)
			return err
		}},
		{"update it again", func() (err error) {
			revision, err = b.Update(t.Context(), "k", []byte("3"), revision)
			return err
		}},
		{"put it", func() error { return b.Put(t.Context(), "l", []byte("4")) }},
		{"publish", func() error { return publish(t.Context(), q, "c", "one", nil) }},
		{"publish a batch", func() error { return q.PublishBatch(t.Context(), batch) }},
		{"publish a result", func() error {
			isNew, err := held.PublishOutcome(t.Context(), nil)
			if err == nil && !isNew {
				err = errors.New("the outcome is not new")
			}
			return err
		}},
		{"acknowledge", func() error { return held.Ack(t.Context()) }},
		{"bury", func() error { return held.Bury(t.Context(), queue.Dead{ID: "batch-0"}) }},
		{"pause", func() error { return q.Pause(t.Context()) }},
		{"resume", func() error { return q.Resume(t.Context()) }},
	}
	for i, step := range steps {
		if step.name == "publish a result" || step.name == "bury" {
			held = lease(t, q)
		}
		g.armed.Store(true)
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if lost := int(g.lost.Load()); lost != i+1 {
			t.Fatalf("%s: %d answers were lost, want %d", step.name, lost, i+1)
		}
	}
	data, at, err := b.Get(t.Context(), "k")
	must(t, err)
	if string(data) != "3" || at != revision {
		t.Errorf("the record is %s at %d, want 3 at %d", data, at, revision)
	}
	wantDepth(t, q, 49, 0)
	if got, letters := results(t, q, 1), deadLetters(t, q); len(got) != 1 || len(letters) != 1 {
		t.Errorf("results %v, dead letters %+v, want one each", got, letters)
	}
	// A write of another client is still a conflict.
	_, err = b.Update(t.Context(), "k", []byte("3"), revision-1)
	mustBe(t, err, queue.ErrConflict)
}

// TestResultsSurviveBrokenConnections breaks the reader's connection repeatedly: each result arrives once, in order.
func TestResultsSurviveBrokenConnections(t *testing.T) {
	t.Parallel()
	s := serve(t, jetStream(t))
	g := newGate(t, s.ClientURL())
	writer := openOn(t, dial(t, s), queue.Config{Campaign: "camp"})
	nc, err := queue.Connect(t.Context(), queue.ConnectConfig{URL: "nats://" + g.address})
	must(t, err)
	t.Cleanup(nc.Close)
	reader := attach(t, nc, queue.Config{Campaign: "camp"})
	const breaks, burst = 5, 20
	publish := func(n int) {
		for i := range burst {
			must(t, writer.PublishResult(t.Context(), fmt.Sprint(n*burst+i), 0, nil))
		}
	}
	publish(0)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	next, n := 0, 1
	for r, err := range reader.Results(ctx, 0) {
		must(t, err)
		if r.ID != fmt.Sprint(next) {
			t.Fatalf("received result %s, want %d", r.ID, next)
		}
		if next++; next == (breaks+1)*burst {
			break
		}
		if next%burst == 0 { // the reader waits for an answer that is lost
			g.armed.Store(true)
			publish(n)
			n++
		}
	}
	if lost := g.lost.Load(); next != (breaks+1)*burst || lost != breaks {
		t.Errorf("%d results and %d breaks, want %d and %d", next, lost, (breaks+1)*burst, breaks)
	}
}

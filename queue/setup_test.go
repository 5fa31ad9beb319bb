package queue_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"ddiff/queue"
)

func TestMain(m *testing.M) {
	setPasswords()
	if conf := os.Getenv(nodeEnv); conf != "" {
		runNode(conf)
		return
	}
	if dir := os.Getenv(victimEnv); dir != "" {
		runVictim(dir)
		return
	}
	// The tests wait for servers and clocks more than for processors.
	if flag.Parse(); runtime.GOMAXPROCS(0) < 8 {
		if err := flag.Set("test.parallel", "8"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// patience limits every wait; a working queue ends them much sooner.
const patience = 20 * time.Second

func start(t testing.TB, dir string) *queue.Embedded {
	t.Helper()
	server, err := queue.StartEmbedded(t.Context(), queue.EmbeddedConfig{Dir: dir})
	must(t, err)
	t.Cleanup(server.Stop)
	return server
}

func open(t testing.TB, server *queue.Embedded, cfg queue.Config) *queue.Queue {
	t.Helper()
	return openOn(t, join(t, server), cfg)
}

// openOn opens a queue, by default of the campaign camp, over a connection.
func openOn(t testing.TB, nc *nats.Conn, cfg queue.Config) *queue.Queue {
	t.Helper()
	cfg.Campaign = cmp.Or(cfg.Campaign, "camp")
	q, err := queue.Open(t.Context(), nc, cfg)
	must(t, err)
	return q
}

func attach(t testing.TB, nc *nats.Conn, cfg queue.Config) *queue.Queue {
	t.Helper()
	q, err := queue.Attach(t.Context(), nc, cfg)
	must(t, err)
	return q
}

func openBoard(t testing.TB, nc *nats.Conn) *queue.Board {
	t.Helper()
	b, err := queue.OpenBoard(t.Context(), nc)
	must(t, err)
	return b
}

func streamsOf(t testing.TB, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	must(t, err)
	return js
}

// join connects to an embedded server.
func join(t testing.TB, server *queue.Embedded) *nats.Conn {
	t.Helper()
	nc, err := server.Connect()
	must(t, err)
	return nc
}

// newQueue opens a queue on its own server.
func newQueue(t *testing.T, cfg queue.Config) *queue.Queue {
	t.Helper()
	return open(t, start(t, t.TempDir()), cfg)
}

// publish publishes one item.
func publish(ctx context.Context, q *queue.Queue, class, id string, payload []byte) error {
	return q.PublishBatch(ctx, []queue.Work{{Class: class, ID: id, Payload: payload}})
}

// lease waits for one item.
func lease(t *testing.T, q *queue.Queue) *queue.Lease {
	t.Helper()
	leases, err := q.Lease(t.Context(), 1, patience)
	must(t, err)
	if len(leases) != 1 {
		t.Fatalf("%d items within %v, want 1", len(leases), patience)
	}
	return leases[0]
}

// wantNone checks that no item is delivered within wait.
func wantNone(t *testing.T, q *queue.Queue, wait time.Duration) {
	t.Helper()
	leases, err := q.Lease(t.Context(), 1, wait)
	must(t, err)
	for _, l := range leases {
		t.Fatalf("item %s was delivered, attempt %d, want none", l.ID(), l.Attempt())
	}
}

func wantDepth(t *testing.T, q *queue.Queue, pending, inFlight uint64) {
	t.Helper()
	// The server updates its counts a moment after it has stored a message.
	deadline := time.Now().Add(patience)
	for {
		p, f, err := q.Depth(t.Context())
		must(t, err)
		if p == pending && f == inFlight {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("depth is %d pending, %d in flight, want %d and %d", p, f, pending, inFlight)
		}
		runtime.Gosched()
	}
}

func deadLetters(t *testing.T, q *queue.Queue) []queue.DeadLetter {
	t.Helper()
	var letters []queue.DeadLetter
	for letter, err := range q.DeadLetters(t.Context()) {
		must(t, err)
		letters = append(letters, letter)
	}
	return letters
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustBe(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v, want %v", err, want)
	}
}

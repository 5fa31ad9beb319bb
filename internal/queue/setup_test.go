package queue_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"ddiff/internal/queue"
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
	b, err := queue.OpenBoard(t.Context(), nc, nil)
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

// passwords of docs/security/nats-accounts.conf, which the server reads from the environment.
var passwords = map[string]string{
	"coordinator": "coordinator-secret", "worker": "worker-secret",
}

func setPasswords() {
	for role, password := range passwords {
		os.Setenv("DDIFF_"+strings.ToUpper(role)+"_PASSWORD", password) //nolint:errcheck // a test without them fails
	}
}

// serve starts a server on a local port that stops with the test.
func serve(t *testing.T, o *server.Options) *server.Server {
	t.Helper()
	o.NoSigs, o.NoLog = true, true
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	s, err := server.NewServer(o)
	must(t, err)
	s.Start()
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server did not start")
	}
	t.Cleanup(func() { stopServer(s) })
	return s
}

func stopServer(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// jetStream returns the options of a server with JetStream.
func jetStream(t *testing.T) *server.Options {
	t.Helper()
	return &server.Options{JetStream: true, StoreDir: t.TempDir()}
}

// serveRoles starts a server with the documented accounts.
func serveRoles(t *testing.T) *server.Server {
	t.Helper()
	return serve(t, roleOptions(t))
}

// roleOptions returns the options of a server with the documented accounts.
func roleOptions(t *testing.T) *server.Options {
	t.Helper()
	accounts, err := filepath.Abs("../../docs/security/nats-accounts.conf")
	must(t, err)
	dir := t.TempDir()
	accounts, err = filepath.Rel(dir, accounts) // relative to the configuration file
	must(t, err)
	conf := filepath.Join(dir, "nats.conf")
	must(t, os.WriteFile(conf, fmt.Appendf(nil, "include %q\n", accounts), 0o600))
	o, err := server.ProcessConfigFile(conf)
	must(t, err)
	o.JetStream, o.StoreDir = true, t.TempDir()
	return o
}

// connect connects with a role.
func connect(t *testing.T, s *server.Server, role string) *nats.Conn {
	t.Helper()
	url := strings.Replace(s.ClientURL(), "://", "://"+role+":"+passwords[role]+"@", 1)
	nc, err := queue.Connect(t.Context(), queue.ConnectConfig{URL: url, Name: t.Name(), Role: role})
	must(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// freePort returns an unused port below those that the system gives to connections, so that it is still free when a server starts later.
func freePort(t *testing.T) int {
	t.Helper()
	var err error
	for range 100 {
		port := 10000 + rand.IntN(10000)
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			must(t, l.Close())
			return port
		}
	}
	must(t, err)
	return 0
}

// dial connects to a server without accounts.
func dial(t *testing.T, s *server.Server) *nats.Conn {
	t.Helper()
	nc, err := queue.Connect(t.Context(), queue.ConnectConfig{URL: s.ClientURL(), Name: t.Name(), Wait: patience})
	must(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// restart stops a server for a time and starts it again with the same port and files.
func restart(t *testing.T, s *server.Server, o *server.Options, outage time.Duration) *server.Server {
	t.Helper()
	o.Port = s.Addr().(*net.TCPAddr).Port
	stopServer(s)
	time.Sleep(outage) // the outage itself is under test
	return serve(t, o)
}

// TestSubjectsOverlap: a stream of others that collects the subjects of ddiff is named.
func TestSubjectsOverlap(t *testing.T) {
	t.Parallel()
	nc := join(t, start(t, t.TempDir()))
	js, err := jetstream.New(nc)
	must(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"ddiff.>"}})
	must(t, err)
	err = queue.Setup(t.Context(), nc, queue.SetupConfig{})
	if !errors.Is(err, queue.ErrLimits) || !strings.Contains(err.Error(), "stream AUDIT has the subject") {
		t.Errorf("Setup: %v", err)
	}
}

package queue_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"ddiff/internal/queue"
)

// nodeEnv names a configuration file; with it set, the test binary is a NATS server.
const nodeEnv = "DDIFF_TEST_NATS_CONF"

func runNode(conf string) {
	o, err := server.ProcessConfigFile(conf)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	s, err := server.NewServer(o)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	s.Start()
	s.WaitForShutdown()
}

// nodes is a cluster of three server processes with the documented configuration: TLS, accounts, sync always.
type nodes struct {
	authority *authority
	ports     [3]int
	env       [3][]string
	processes [3]*exec.Cmd
}

func startNodes(t *testing.T) *nodes {
	t.Helper()
	n := &nodes{authority: newAuthority(t)}
	dir := t.TempDir()
	cert, key := n.authority.issue(t, "node", time.Now().Add(time.Hour))
	var routes []string
	for i := range n.processes {
		n.ports[i] = freePort(t)
		port := freePort(t)
		routes = append(routes, fmt.Sprintf("DDIFF_NATS_ROUTE_%d=nats-route://127.0.0.1:%d", i+1, port))
		n.env[i] = []string{
			fmt.Sprint("DDIFF_NATS_NAME=node-", i), fmt.Sprint("DDIFF_NATS_LISTEN=127.0.0.1:", n.ports[i]),
			fmt.Sprint("DDIFF_NATS_CLUSTER=127.0.0.1:", port), "DDIFF_NATS_STORE=" + filepath.Join(dir, fmt.Sprint(i)),
			"DDIFF_NATS_CERT=" + cert, "DDIFF_NATS_KEY=" + key, "DDIFF_NATS_CA=" + n.authority.file,
			nodeEnv + "=../../docs/security/nats-server.conf",
		}
	}
	for i := range n.processes {
		n.env[i] = append(append(os.Environ(), n.env[i]...), routes...)
		n.start(t, i)
	}
	t.Cleanup(func() {
		for i := range n.processes {
			n.kill(t, i)
		}
	})
	return n
}

func (n *nodes) start(t *testing.T, i int) {
	t.Helper()
	n.processes[i] = exec.Command(os.Args[0])
	n.processes[i].Env = n.env[i]
	n.processes[i].Stdout, n.processes[i].Stderr = os.Stderr, os.Stderr // for the reason of a failed start
	must(t, n.processes[i].Start())
}

// kill kills a server process.
func (n *nodes) kill(t *testing.T, i int) {
	t.Helper()
	if n.processes[i].ProcessState == nil {
		must(t, n.processes[i].Process.Kill())
		n.processes[i].Wait() //nolint:errcheck // it was killed
	}
}

func (n *nodes) connect(t *testing.T, role string) *nats.Conn {
	t.Helper()
	var urls []string
	for _, port := range n.ports {
		urls = append(urls, fmt.Sprintf("tls://%s:%s@127.0.0.1:%d", role, passwords[role], port))
	}
	nc, err := queue.Connect(t.Context(), queue.ConnectConfig{
		URL: strings.Join(urls, ","), Role: role, Name: role, CAFile: n.authority.file, Wait: time.Minute,
	})
	must(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// leader returns the index of the server that leads a stream.
func leader(t *testing.T, nc *nats.Conn, name string) int {
	t.Helper()
	js := streamsOf(t, nc)
	found := -1
	waitFor(t, "the leader of "+name, func() bool {
		stream, err := js.Stream(t.Context(), name)
		if err != nil || stream.CachedInfo().Cluster == nil {
			return false
		}
		_, err = fmt.Sscanf(stream.CachedInfo().Cluster.Leader, "node-%d", &found)
		return err == nil
	})
	return found
}

// TestCampaignSurvivesServerDeaths runs a campaign on three servers and kills the leaders of its streams one by one.
func TestCampaignSurvivesServerDeaths(t *testing.T) {
	if testing.Short() {
		t.Skip("restarts servers for half a minute: make test-all")
	}
	t.Parallel()
	n := startNodes(t)
	coordinator, other, worker := n.connect(t, "coordinator"), n.connect(t, "coordinator"), n.connect(t, "worker")
	must(t, queue.Setup(t.Context(), coordinator, queue.SetupConfig{Replicas: 3}))
	q := openOn(t, coordinator, queue.Config{Campaign: "camp", Replicas: 3, AckWait: 5 * time.Second, MaxAttempts: 9, Timeout: time.Minute})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()

	// Two candidates compete for the lead throughout.
	var leaders, terms atomic.Int32
	for _, nc := range []*nats.Conn{coordinator, other} {
		e, err := queue.NewElection(ctx, nc, queue.ElectionConfig{TTL: 10 * time.Second})
		must(t, err)
		background.Go(func() {
			err := e.Run(ctx, func(ctx context.Context) error {
				terms.Add(1)
				if leaders.Add(1) != 1 {
					t.Error("there are two leaders")
				}
				<-ctx.Done()
				leaders.Add(-1)
				return ctx.Err()
			})
			if err != nil {
				t.Errorf("Election.Run: %v", err)
			}
		})
	}
	// A worker leases and acknowledges items.
	background.Go(func() {
		w, err := queue.Attach(ctx, worker, queue.Config{Campaign: "camp", Timeout: time.Minute})
		if err != nil {
			t.Errorf("Attach: %v", err)
			return
		}
		for ctx.Err() == nil {
			leases, err := w.Lease(ctx, 8, time.Second)
			if err != nil && ctx.Err() == nil {
				if !errors.Is(err, queue.ErrUnavailable) {
					t.Errorf("Lease: %v", err)
				}
				time.Sleep(100 * time.Millisecond) // then retry, as a worker does
			}
			for _, l := range leases {
				if err := l.PublishResult(ctx, l.Payload()); err != nil && ctx.Err() == nil {
					t.Errorf("PublishResult: %v", err)
				}
				if err := l.Ack(ctx); err != nil && ctx.Err() == nil {
					t.Errorf("Ack: %v", err)
				}
			}
		}
	})
	// A client watches the board.
	board, err := queue.OpenBoard(ctx, coordinator, nil)
	must(t, err)
	var note atomic.Int32
	watched, err := queue.OpenBoard(ctx, worker, nil)
	must(t, err)
	background.Go(func() {
		for c, err := range watched.Watch(ctx, "status.") {
			if err != nil {
				t.Errorf("Watch: %v", err)
			}
			if !c.Ready {
				note.Store(int32(len(c.Data)))
			}
		}
	})

	const rounds, items = 2, 300
	published := make(chan error, 1)
	background.Go(func() {
		for i := range rounds * items / 10 {
			batch := make([]queue.Work, 10)
			for j := range batch {
				batch[j] = queue.Work{Class: "c", ID: fmt.Sprint(10*i + j), Payload: make([]byte, 1000)}
			}
			if err := q.PublishBatch(ctx, batch); err != nil {
				published <- err
				return
			}
		}
		published <- nil
	})
	got := map[string]int{}
	var last uint64
	killed := -1
	for r, err := range q.Results(ctx, 0) {
		must(t, err)
		if r.Seq <= last {
			t.Fatalf("result number %d follows %d", r.Seq, last)
		}
		last = r.Seq
		got[r.ID]++
		if len(got) == rounds*items {
			break
		}
		if got[r.ID] > 1 || len(got)%items != items/2 {
			continue
		}
		if killed >= 0 {
			n.start(t, killed)
		}
		killed = leader(t, coordinator, []string{"DDIFF_WORK", "DDIFF_RESULT"}[len(got)/items])
		n.kill(t, killed)
		must(t, board.Put(ctx, "status.camp", make([]byte, len(got))))
	}
	must(t, <-published)
	for id, times := range got {
		if times != 1 {
			t.Errorf("item %s has %d results", id, times)
		}
	}
	if len(got) != rounds*items {
		t.Errorf("%d results, want %d", len(got), rounds*items)
	}
	waitFor(t, "the last note", func() bool { return note.Load() == items+items/2 })
	waitFor(t, "the end of the work", func() bool {
		pending, inFlight, err := q.Depth(ctx)
		return err == nil && pending == 0 && inFlight == 0
	})
	if terms.Load() == 0 {
		t.Error("no candidate has led")
	}
	t.Logf("%d terms of office", terms.Load())
}

// victimEnv names a directory; with it set, the test binary works on a queue there until it is killed.
const victimEnv = "DDIFF_TEST_QUEUE_VICTIM"

// runVictim publishes four items, acknowledges one, buries one, publishes a result, leaves one leased, prints "ready"
// and waits.
func runVictim(dir string) {
	if err := work(context.Background(), dir); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadByte() //nolint:errcheck // blocks until the kill
}

func work(ctx context.Context, dir string) error {
	server, err := queue.StartEmbedded(ctx, queue.EmbeddedConfig{Dir: dir})
	if err != nil {
		return err
	}
	nc, err := server.Connect()
	if err != nil {
		return err
	}
	q, err := queue.Open(ctx, nc, queue.Config{Campaign: "camp"})
	if err != nil {
		return err
	}
	for _, id := range []string{"acked", "held", "waiting"} {
		if err := publish(ctx, q, "c", id, []byte(id)); err != nil {
			return err
		}
	}
	leases, err := q.Lease(ctx, 2, patience)
	if err != nil || len(leases) != 2 {
		return fmt.Errorf("%d leases, %w", len(leases), err)
	}
	if err := q.PublishResult(ctx, "acked", 0, []byte("result")); err != nil {
		return err
	}
	return leases[0].Ack(ctx)
}

func TestKilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	victim := exec.Command(os.Args[0])
	victim.Env = append(os.Environ(), victimEnv+"="+dir)
	stdin, err := victim.StdinPipe()
	must(t, err)
	defer stdin.Close() // the process was killed
	stdout, err := victim.StdoutPipe()
	must(t, err)
	must(t, victim.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatalf("the process printed %q, %v", line, err)
	}
	must(t, victim.Process.Kill())
	victim.Wait() //nolint:errcheck // it was killed

	q := open(t, start(t, dir), queue.Config{AckWait: shortWait})
	left := map[string]bool{"held": true, "waiting": true}
	for deadline := time.Now().Add(patience); len(left) > 0; {
		l := lease(t, q)
		if !left[l.ID()] || string(l.Payload()) != l.ID() {
			t.Fatalf("leased %s with payload %q, want one of %v", l.ID(), l.Payload(), left)
		}
		delete(left, l.ID())
		must(t, l.Ack(t.Context()))
		if time.Now().After(deadline) {
			t.Fatalf("items %v are lost", left)
		}
	}
	if got := results(t, q, 1); got["acked"] != "result" {
		t.Fatalf("results %v", got)
	}
}

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
		{"pause", func() error { return q.Pause(t.Context()) }},
		{"resume", func() error { return q.Resume(t.Context()) }},
	}
	for i, step := range steps {
		if step.name == "publish a result" {
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
	wantDepth(t, q, 50, 0)
	if got := results(t, q, 1); len(got) != 1 {
		t.Errorf("results %v, want one", got)
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

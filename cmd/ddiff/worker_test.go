package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"ddiff/api"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/restore/item"
)

// natsServer is a server with a port, set up as a coordinator does.
type natsServer struct {
	url   string
	board *queue.Board
	queue func(campaign string) *queue.Queue
	stop  func()
}

func startNATS(t *testing.T, store string) *natsServer {
	t.Helper()
	skipLong(t)
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true, Username: "me", Password: secret,
	})
	must(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(limit) {
		t.Fatal("timeout: the server is not ready")
	}
	n := &natsServer{url: strings.Replace(s.ClientURL(), "//", "//me:"+secret+"@", 1), stop: s.Shutdown}
	nc, err := queue.Connect(t.Context(), queue.ConnectConfig{URL: n.url, Name: t.Name()})
	must(t, err)
	t.Cleanup(nc.Close)
	n.queue = func(campaign string) *queue.Queue {
		q, err := queue.Open(t.Context(), nc, queue.Config{Campaign: campaign, AckWait: limit, MaxAttempts: 1})
		must(t, err)
		return q
	}
	if store == "" {
		return n // without a coordinator
	}
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{}))
	n.board, err = queue.OpenBoard(t.Context(), nc, nil)
	must(t, err)
	n.put(t, record.KeyCluster, record.Cluster{Schema: record.Schema, Store: store, AckWait: limit})
	return n
}

func (n *natsServer) put(t *testing.T, key string, record any) {
	t.Helper()
	data, err := json.Marshal(record)
	must(t, err)
	must(t, n.board.Put(t.Context(), key, data))
}

// campaign submits a campaign with one item.
func (n *natsServer) campaign(t *testing.T, id string, item item.Item) *queue.Queue {
	t.Helper()
	q := n.queue(id)
	data, err := json.Marshal(item)
	must(t, err)
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "class", ID: item.ID, Payload: data}}))
	n.put(t, record.KeyCampaignPrefix+id, record.Campaign{
		Schema: record.Schema, ID: id, Output: id, Priority: record.PriorityNormal, Weight: 1,
		Wanted: record.WantRun, Phase: record.PhaseRunning, Prior: record.PriorFile{SHA256: item.Prior},
	})
	return q
}

// workers returns the keys of the workers' records.
func (n *natsServer) workers(t *testing.T) []string {
	t.Helper()
	keys, err := n.board.Keys(t.Context(), record.KeyWorkerPrefix)
	must(t, err)
	return keys
}

// coordinator starts a coordinator, and returns the address of its HTTP API.
func (n *natsServer) coordinator(t *testing.T, store string, args ...string) (c *process, server string) {
	t.Helper()
	address := freeAddress(t)
	c = startProcess(t, nil, append([]string{"coordinator", "--nats", n.url, "--store", store, "--listen", address, "--settle", "0s"}, args...)...)
	c.wait(t, &c.stderr, "coordinator is ready", 1)
	return c, "http://" + address
}

// client returns a client of a coordinator of this user.
func client(t *testing.T, server string) *api.Client {
	t.Helper()
	kept, err := filepath.Glob(filepath.Join(cache, "ddiff", "pages", "*"+server[strings.LastIndex(server, ":")+1:]))
	must(t, err)
	c, err := api.NewClient(api.ClientConfig{URL: server, Token: strings.TrimSpace(string(read(t, kept[0])))})
	must(t, err)
	return c
}

// beginWorker starts a worker that writes its spans to stdout, as begin does.
func beginWorker(t *testing.T, args ...string) *process {
	t.Helper()
	return startProcess(t, nil, append([]string{"worker", "--threads", "1", "--device", "cpu"}, args...)...)
}

// longItem returns an item with many steps, from the result of a run.
func longItem(t *testing.T) item.Item {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	wantCode(t, restore(t, "--images", photographs(t, "coffee"), "--task", "super_resolution", "--steps", "2", "--out", out), 0)
	found, err := filepath.Glob(filepath.Join(out, "items", "*", "result.json"))
	must(t, err)
	var r item.Result
	must(t, json.Unmarshal(read(t, found[0]), &r))
	var solver map[string]any
	must(t, json.Unmarshal(r.Item.Solver, &solver))
	solver["steps"] = 1000
	r.Item.Solver, err = json.Marshal(solver)
	must(t, err)
	must(t, r.Item.Identify())
	return r.Item
}

// The first worker saves a checkpoint on SIGTERM and exits with 0; the second worker resumes the item and exceeds its
// grace period.
func TestWorkerStops(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	n := startNATS(t, store)
	item := longItem(t)
	q := n.campaign(t, "long", item)

	w := beginWorker(t, "--nats", n.url, "--name", "first")
	w.wait(t, &w.stdout, steps, 1)
	if there := n.workers(t); len(there) != 1 || there[0] != record.KeyWorkerPrefix+"first" {
		t.Errorf("the workers' records are %q", there)
	}
	w.signal(t, syscall.SIGTERM)
	e := w.end()
	wantCode(t, e, 0)
	wantMessage(t, e, "stored a checkpoint")
	wantMessage(t, e, "released item")
	wantNoSecret(t, e, store) // log, spans and checkpoints lack the password of NATS
	read(t, filepath.Join(store, "long", "checkpoints", item.ID))
	if pending, inFlight, err := q.Depth(t.Context()); err != nil || pending != 1 || inFlight != 0 {
		t.Errorf("%d items wait, %d are leased (%v)", pending, inFlight, err)
	}
	if left := n.workers(t); len(left) != 0 {
		t.Errorf("the workers' records are %q after the stop", left)
	}

	w = beginWorker(t, "--nats", n.url, "--name", "second", "--grace", "1ns")
	w.wait(t, &w.stdout, steps, 1)
	w.signal(t, syscall.SIGTERM)
	e = w.end()
	wantCode(t, e, 1)
	wantMessage(t, e, "the grace period expired", "did not stop within 1ns")
	wantParents(t, w.stdout.text())
}

func TestWorkerWaitsForCoordinator(t *testing.T) {
	t.Parallel()
	n := startNATS(t, "")
	w := beginWorker(t, "--nats", n.url)
	w.wait(t, &w.stderr, "waiting for a coordinator", 1)
	w.signal(t, syscall.SIGTERM)
	wantCode(t, w.end(), 0)
}

// Simulated workers process all items, and exit.
func TestWorkerOnce(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	n := startNATS(t, store)
	item := item.Item{ID: "one", Name: "one"}
	q := n.campaign(t, "short", item)
	w := beginWorker(t, "--nats", n.url, "--once", "500ms", "--simulate", "10ms", "--simulate-workers", "3")
	e := w.end()
	wantCode(t, e, 0)
	if !strings.HasPrefix(e.stdout, "workers=1 items=1 busy=") {
		t.Errorf("stdout is %q", e.stdout)
	}
	if last, err := q.LastResult(t.Context()); err != nil || last == 0 {
		t.Errorf("there is no result event (%v)", err)
	}
	read(t, filepath.Join(store, "short", "items", "one", "result.json"))
}

func TestWorkerFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{nil, 2, "--nats"},
		{[]string{"--nats", "http://somewhere"}, 2, "nats://host:4222"},
		{[]string{"--nats", "nats://127.0.0.1:1"}, 9, "127.0.0.1:1"},
		{[]string{"--nats", "nats://u:secret@127.0.0.1:1"}, 9, "127.0.0.1:1"},
		{[]string{"--batch", "many"}, 2, "--batch"},
		{[]string{"--batch", "0"}, 2, "--batch"},
		{[]string{"--grace", "0s"}, 2, "--grace"},
		{[]string{"--once", "-1s"}, 2, "--once"},
		{[]string{"--simulate-workers", "5"}, 2, "--simulate"},
		{[]string{"--log-level", "loud"}, 2, "--log-level"},
		{[]string{"--stage-timeout", "0s"}, 2, "--stage-timeout"},
		{[]string{"--stage-timeout", "soon=5m"}, 2, "--stage-timeout"},
		{[]string{"--stage-timeout", "=5m"}, 2, "--stage-timeout"},
	} {
		e := ddiff(t, append([]string{"worker"}, c.args...)...)
		if e.code != c.code || !strings.Contains(e.stderr, c.says) || strings.Contains(e.stderr, "secret") {
			t.Errorf("%q: want exit code %d and %q\n%v", c.args, c.code, c.says, e)
		}
	}
}

// TestWorkerRefusesForgedCluster replaces the record of the cluster by one without a store: a worker must not use its own
// working directory as the store.
func TestWorkerRefusesForgedCluster(t *testing.T) {
	t.Parallel()
	n := startNATS(t, t.TempDir())
	for text, reason := range map[string]string{
		`{"type":"io.nats.jetstream.api.v1.account_info_response","memory":0}`: "schema",
		`{"schema":1,"store":"","ack_wait_ns":60000000000}`:                    "store: is missing",
		`{"schema":1,"store":"results"}`:                                       "ack_wait_ns",
	} {
		must(t, n.board.Put(t.Context(), record.KeyCluster, []byte(text)))
		cmd := command(t, "worker", "--simulate", "1s", "--nats", n.url)
		cmd.Dir = t.TempDir()
		e := end(t, cmd)
		if e.code == 0 || !strings.Contains(e.stderr, "read record cluster: "+reason) {
			t.Errorf("%s: exit code %d, %s", text, e.code, e.stderr)
		}
		entries, err := os.ReadDir(cmd.Dir)
		must(t, err)
		if len(entries) > 0 {
			t.Errorf("%s: the worker has written %v", text, entries)
		}
	}
}

// TestRetryRefuses conditions that contradict each other, and an empty item, which begins all ids.
func TestRetryRefuses(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{}, {"--missing", "--failed"}, {"id", "--failed"}, {"id", "--dead"}, {"id", "--missing"}, {"--failed", "--where", "x"}, {"id", ""},
	} {
		e := ddiff(t, append([]string{"retry", "x"}, args...)...)
		if e.code != 2 || strings.Count(e.stderr, "\n") != 1 {
			t.Errorf("%q: exit code %d, want 2 and one line\n%v", args, e.code, e)
		}
	}
}

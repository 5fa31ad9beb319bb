package gpuworker_test

import (
	"testing"
	"time"

	"ddiff/gpuworker"
	"ddiff/internal/queue"
	"ddiff/restore/item"
)

// host starts workers with a connection each.
type host struct {
	t      *testing.T
	server *queue.Embedded
	queue  *queue.Queue
	store  store
	end    chan struct{}
	all    []*running
}

func newHost(t *testing.T, s store, cfg queue.Config) *host {
	t.Helper()
	server, err := queue.StartEmbedded(t.Context(), queue.EmbeddedConfig{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(server.Stop)
	nc, err := server.Connect()
	must(t, err)
	cfg.Campaign, cfg.RetryBase = "test", time.Millisecond
	q, err := queue.Open(t.Context(), nc, cfg)
	must(t, err)
	h := &host{t: t, server: server, queue: q, store: s, end: make(chan struct{})}
	t.Cleanup(func() {
		close(h.end)
		for _, r := range h.all {
			r.drain()
			if err := <-r.ended; err != nil { // the connections of dead workers are closed
				t.Log("a worker ended:", err)
			}
		}
	})
	return h
}

// start starts a worker. died is closed when the worker reads the poison.
func (h *host) start(name, poison string) (died chan struct{}) {
	h.t.Helper()
	nc, cfg := h.connected(name)
	m := &mortal{poison: poison, kill: nc.Close, died: make(chan struct{}), end: h.end}
	single(&cfg, func(s *gpuworker.Single) { s.Items.Sources, s.Items.Batch = m, 8 })
	h.begin(cfg)
	return m.died
}

// begin creates and starts a worker.
func (h *host) begin(cfg gpuworker.Config) *gpuworker.Worker {
	h.t.Helper()
	w, r := begin(h.t, cfg)
	h.all = append(h.all, r)
	return w
}

// connected configures a worker with a connection of its own.
func (h *host) connected(name string) (*queue.Conn, gpuworker.Config) {
	h.t.Helper()
	nc, err := h.server.Connect()
	must(h.t, err)
	q, err := queue.Attach(h.t.Context(), nc, queue.Config{Campaign: "test"})
	must(h.t, err)
	cfg := config(h.t, q, h.store)
	cfg.Name, cfg.AckWait = name, h.queue.Config().AckWait
	return nc, cfg
}

func (h *host) config(name string, change ...func(*gpuworker.Config)) gpuworker.Config {
	h.t.Helper()
	_, cfg := h.connected(name)
	for _, f := range change {
		f(&cfg)
	}
	return cfg
}

// wantDone checks that all items are done at their first attempt.
func wantDone(t *testing.T, got map[string]item.Result) {
	t.Helper()
	for name, r := range got {
		if r.Outcome != item.OutcomeDone || r.Attempt != 1 {
			t.Errorf("item %s is %s at attempt %d: %s", name, r.Outcome, r.Attempt, r.Reason)
		}
	}
}

package gpuworker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/gpuworker"
	"ddiff/internal/gpuworker/enginecache"
	"ddiff/internal/gpuworker/fleet"
	"ddiff/internal/lifecycle"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/regular"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

// cluster is a server, a board and a store, as coordinators set them up.
type cluster struct {
	t       *testing.T
	open    func(campaign string, cfg queue.Config) *queue.Queue
	board   *queue.Board
	store   *recorder
	connect func() *queue.Conn
	fleet   func(change ...func(*fleet.Config)) *fleet.Fleet
	log     *lockedBuffer
}

// recorder is a store that records the order in which results are created.
type recorder struct {
	*storage.Dir
	mu      sync.Mutex
	created []string // the campaigns of the results
	changed chan struct{}
}

func (r *recorder) Create(ctx context.Context, key string, data []byte) error {
	err := r.Dir.Create(ctx, key, data)
	if campaign, _, ok := strings.Cut(key, "/items/"); ok && err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.created = append(r.created, strings.TrimPrefix(campaign, "out/"))
		close(r.changed)
		r.changed = make(chan struct{})
	}
	return err
}

// waitFor waits until a condition on the campaigns of the results holds, and returns these campaigns.
func (r *recorder) waitFor(t *testing.T, enough func(created []string) bool) []string {
	t.Helper()
	deadline := time.After(patience)
	for {
		r.mu.Lock()
		created, changed := append([]string(nil), r.created...), r.changed
		r.mu.Unlock()
		if enough(created) {
			return created
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("timeout with results of %v", created)
		}
	}
}

func count(created []string, campaign string) int {
	n := 0
	for _, c := range created {
		if c == campaign {
			n++
		}
	}
	return n
}

// lockedBuffer is a log that may be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// wait waits until the log contains a text.
func (l *lockedBuffer) wait(t *testing.T, text string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); !strings.Contains(l.String(), text); <-tick.C {
		if time.Since(begin) > patience {
			t.Fatalf("the log lacks %q:\n%s", text, l)
		}
	}
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	server, err := queue.StartEmbedded(t.Context(), queue.EmbeddedConfig{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(server.Stop)
	nc, err := server.Connect()
	must(t, err)
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{}))
	c := &cluster{t: t, store: &recorder{Dir: newStore(t), changed: make(chan struct{})}, log: &lockedBuffer{}}
	c.board, err = queue.OpenBoard(t.Context(), nc, nil)
	must(t, err)
	c.connect = func() *queue.Conn {
		t.Helper()
		other, err := server.Connect()
		must(t, err)
		return other
	}
	c.open = func(campaign string, cfg queue.Config) *queue.Queue {
		t.Helper()
		cfg.Campaign, cfg.RetryBase = campaign, time.Millisecond
		if cfg.AckWait == 0 {
			cfg.AckWait = patience
		}
		q, err := queue.Open(t.Context(), nc, cfg)
		must(t, err)
		return q
	}
	c.fleet = func(change ...func(*fleet.Config)) *fleet.Fleet {
		t.Helper()
		cfg := fleet.Config{
			Board: c.board, Store: c.store, Sources: manifest.Files{}, Batch: 1,
			Attach: func(ctx context.Context, campaign string) (*queue.Queue, error) {
				return queue.Attach(ctx, nc, queue.Config{Campaign: campaign})
			},
			Logger: slog.New(slog.NewTextHandler(c.log, nil)),
		}
		for _, f := range change {
			f(&cfg)
		}
		f, err := fleet.New(cfg)
		must(t, err)
		t.Cleanup(lifecycle.Go(context.Background(), f.Run).Stop)
		return f
	}
	return c
}

// submit puts a campaign on the board.
func (c *cluster) submit(id string, change ...func(*record.Campaign)) record.Campaign {
	c.t.Helper()
	r := record.Campaign{
		Schema: record.Schema, ID: id, Output: "out/" + id, Priority: record.PriorityNormal, Weight: 1,
		Submitted: time.Now(), Wanted: record.WantRun, Phase: record.PhaseRunning,
		Prior: record.PriorFile{SHA256: strings.Repeat("0", 64)},
	}
	for _, f := range change {
		f(&r)
	}
	data, err := json.Marshal(r)
	must(c.t, err)
	must(c.t, c.board.Put(c.t.Context(), record.KeyCampaignPrefix+id, data))
	return r
}

func priority(p record.Priority) func(*record.Campaign) {
	return func(r *record.Campaign) { r.Priority = p }
}

// fill publishes n items for simulated workers.
func (c *cluster) fill(id string, n int) *queue.Queue {
	c.t.Helper()
	q := c.open(id, queue.Config{})
	var work []queue.Work
	for i := range n {
		it := item.Item{ID: fmt.Sprintf("%s-%04d", id, i), Campaign: id, Name: fmt.Sprint(i)}
		data, err := json.Marshal(it)
		must(c.t, err)
		work = append(work, queue.Work{Class: "class", ID: it.ID, Payload: data})
	}
	must(c.t, q.PublishBatch(c.t.Context(), work))
	return q
}

// read waits until the fleets have read all records of the board: they log the one that is no campaign.
func (c *cluster) read() {
	c.t.Helper()
	must(c.t, c.board.Put(c.t.Context(), record.KeyCampaignPrefix+"unreadable", []byte("{}")))
	c.log.wait(c.t, "unreadable")
}

// gate is a fleet that leases nothing while the mutex is locked.
type gate struct {
	*fleet.Fleet
	sync.Mutex
}

func (g *gate) Next(ctx context.Context, wait time.Duration) (gpuworker.Assignment, []*queue.Lease, error) {
	g.Lock()
	defer g.Unlock()
	return g.Fleet.Next(ctx, wait)
}

// simulated configures a worker that holds items for about a time.
func (c *cluster) simulated(mean time.Duration) gpuworker.Config {
	cfg := config(c.t, nil, nil)
	cfg.Work, cfg.Simulate, cfg.TolerateQueueErrors = c.fleet(), &gpuworker.Simulation{Mean: mean}, true
	return cfg
}

// prior stores a prior that predicts a share of the image as noise in the cluster's store, as a coordinator does.
func (c *cluster) prior(data []byte) record.PriorFile {
	c.t.Helper()
	p := record.PriorFile{SHA256: regular.SHA256(data), Name: "tiny", License: "CC0-1.0"}
	p.Key = "priors/" + p.SHA256 + ".onnx"
	must(c.t, c.store.Put(c.t.Context(), p.Key, data))
	return p
}

// engines returns a cache for priors from the cluster's store.
func (c *cluster) engines(change ...func(*enginecache.Config)) *enginecache.Cache {
	c.t.Helper()
	cfg := enginecache.Config{
		Runtime: onnxtest.Runtime(c.t), Store: c.store, Dir: c.t.TempDir(),
		Logger: slog.New(slog.NewTextHandler(c.log, nil)),
	}
	for _, f := range change {
		f(&cfg)
	}
	e, err := enginecache.New(cfg)
	must(c.t, err)
	c.t.Cleanup(func() {
		if err := e.Close(); err != nil {
			c.t.Error(err)
		}
	})
	return e
}

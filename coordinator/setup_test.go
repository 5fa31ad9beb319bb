package coordinator_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"

	"ddiff/coordinator"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/restore/raster"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(archivedPair.dir) //nolint:errcheck // a folder of the system's temporary files
		os.Exit(code)
	}))
}

// patience is the limit of every wait; a correct program needs far less.
const patience = 2 * time.Minute

var must = boardtest.Must

// testCluster is a cluster in one process: a real queue server, a store, coordinators that start and stop, and fake
// workers.
type testCluster struct {
	t      *testing.T
	server *queue.Embedded
	dir    string // of the dataset
	store  *storage.Dir
	nc     *queue.Conn
	setup  func()
	board  *queue.Board
	open   func(ctx context.Context, campaign string, attempts int) (*queue.Queue, error)
	// inspect opens a queue without creating it.
	inspect func(campaign string) (*queue.Queue, error)
	// attach opens the queue of a campaign for a worker.
	attach func(ctx context.Context, campaign string) (*queue.Queue, error)
	sweep  func(ctx context.Context) error
	output string     // of all campaigns; default: the id of each
	rows   shard.Rows // of coordinators that may crash; default: those of the dataset
	window int        // items of a window; default: that of coordinators
	// workers is where the workers store results; default: store.
	workers *storage.Dir
	log     *slog.Logger

	mu      sync.Mutex
	outcome func(it item.Item, attempt int) error // nil: done
	check   record.Checked
	seconds float64        // device-seconds of an item
	pool    string         // of the workers
	started map[string]int // how often workers started each item
	empty   int            // pulls of all workers that returned no item
}

// errDead makes a worker publish an item as dead; errHang makes it abandon the item.
var (
	errDead = errors.New("out of attempts")
	errHang = errors.New("hangs")
)

// newStore returns an empty store in a directory of the test.
func newStore(t *testing.T) *storage.Dir {
	t.Helper()
	s, err := storage.NewDir(t.TempDir())
	must(t, err)
	return s
}

func newTestCluster(t *testing.T, images int) *testCluster {
	t.Helper()
	server, nc, kv := boardtest.Start(t)
	tc := &testCluster{
		t: t, server: server, dir: t.TempDir(), store: newStore(t), nc: nc, board: kv, started: map[string]int{},
		check: record.Checked{Worker: "fake", Checks: []record.Check{{Name: "prior card", Found: "good"}}},
		log:   slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo})),
	}
	tc.setup = func() { must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{})) }
	config := queueConfig
	tc.open = func(ctx context.Context, campaign string, attempts int) (*queue.Queue, error) {
		return queue.Open(ctx, nc, config(campaign, attempts))
	}
	tc.inspect = func(campaign string) (*queue.Queue, error) { return queue.Inspect(nc, config(campaign, 3)) }
	tc.attach = func(ctx context.Context, campaign string) (*queue.Queue, error) {
		return queue.Attach(ctx, nc, config(campaign, 3))
	}
	tc.sweep = func(ctx context.Context) error {
		return queue.Sweep(ctx, nc, queue.SweepConfig{Interval: 100 * time.Millisecond, Outcome: func() ([]byte, error) {
			return json.Marshal(item.Result{Outcome: item.OutcomeDead, Reason: "crashed"})
		}})
	}
	must(t, kv.Put(t.Context(), queue.KeyLeader, []byte("{}"))) // verbs wait for the leader of the test
	for i := range images {
		tc.image(fmt.Sprintf("image%03d", i), i)
	}
	return tc
}

// queueConfig configures the queue of a campaign.
func queueConfig(campaign string, attempts int) queue.Config {
	return queue.Config{Campaign: campaign, AckWait: 2 * time.Second, MaxAttempts: attempts}
}

// image adds an image with distinct bytes to the dataset.
func (tc *testCluster) image(name string, seed int) {
	must(tc.t, writeImage(tc.dir, name, seed))
}

// writeImage writes an image with distinct bytes.
func writeImage(dir, name string, seed int) error {
	img := &raster.Image{Channels: 3, Height: 32, Width: 32, Pix: make([]float32, 3*32*32)}
	for k := range img.Pix {
		img.Pix[k] = float32((k*7+seed*13)%255)/127.5 - 1
	}
	data, err := raster.EncodePNG(img)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644)
}

// write writes a file of the dataset.
func (tc *testCluster) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(tc.dir, name), data, 0o644)
}

func (tc *testCluster) spec(name string) *manifest.Spec {
	spec := manifest.Default()
	spec.Name, spec.Dataset.Path, spec.Dataset.Size, spec.Steps = name, tc.dir, 32, 10
	spec.Tasks = []item.Task{{Name: "super_resolution"}, {Name: "hdr"}}
	must(tc.t, spec.Validate(manifest.Catalogue{}))
	return spec
}

// submit submits a campaign.
func (tc *testCluster) submit(name string, canary int) string {
	tc.t.Helper()
	c, created, err := recordtest.Submit(tc.t.Context(), tc.board, tc.store, tc.spec(name), board.Order{Canary: canary}, time.Now())
	must(tc.t, err)
	if !created {
		tc.t.Fatalf("campaign %s was there already", c.ID)
	}
	return c.ID
}

// lead starts a coordinator; stop stops it and waits for its end.
func (tc *testCluster) lead() (stop func()) {
	return tc.leadWith(func(*coordinator.Config) {})
}

func (tc *testCluster) leadWith(change func(c *coordinator.Config)) (stop func()) {
	tc.t.Helper()
	service, err := coordinator.New(tc.config(change))
	must(tc.t, err)
	return tc.background(service.Lead)
}

// config is the configuration of a leader.
func (tc *testCluster) config(change func(c *coordinator.Config)) coordinator.Config {
	cfg := coordinator.Config{
		Board: tc.board, Open: tc.open, Sweep: tc.sweep, Store: tc.store, StoreAddress: "memory", Sources: manifest.Files{},
		AckWait: 2 * time.Second, Tick: 50 * time.Millisecond, Stall: 500 * time.Millisecond, Restart: 200 * time.Millisecond, Probe: 100 * time.Millisecond, Window: tc.window,
		Logger: tc.log, Tracer: noop.NewTracerProvider().Tracer(""),
	}
	change(&cfg)
	return cfg
}

// background runs f until the test ends or stop is called.
func (tc *testCluster) background(f func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := f(ctx); err != nil && ctx.Err() == nil {
			tc.t.Errorf("ended before its cancellation: %v", err)
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	tc.t.Cleanup(stop)
	return stop
}

// work starts a fake worker for a campaign.
func (tc *testCluster) work(campaign string) (stop func()) {
	return tc.background(func(ctx context.Context) error {
		for ctx.Err() == nil {
			q, err := tc.attach(ctx, campaign)
			if err == nil {
				err = tc.pull(ctx, q, campaign)
			}
			// A queue that is dropped and created again does not answer for a moment.
			transient := errors.Is(err, queue.ErrNotReady) || errors.Is(err, queue.ErrUnavailable)
			if err != nil && ctx.Err() == nil && !transient {
				return err
			}
			pause(ctx, 20*time.Millisecond)
		}
		return nil
	})
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (tc *testCluster) pull(ctx context.Context, q *queue.Queue, campaign string) error {
	for ctx.Err() == nil {
		leases, err := q.Lease(context.WithoutCancel(ctx), 1, 200*time.Millisecond) // an item that arrives after the end would stay leased
		if err != nil {
			return err
		}
		if len(leases) == 0 {
			tc.mu.Lock()
			tc.empty++
			tc.mu.Unlock()
		}
		for _, l := range leases {
			if err := tc.restore(context.WithoutCancel(ctx), l, campaign); err != nil {
				return err
			}
		}
	}
	return nil
}

// restore settles an item as a worker does.
func (tc *testCluster) restore(ctx context.Context, l *queue.Lease, campaign string) error {
	tc.mu.Lock()
	tc.started[l.ID()]++
	outcome, check, seconds, pool := tc.outcome, tc.check, tc.seconds, tc.pool
	tc.mu.Unlock()
	if l.ID() == record.IDPreflight {
		data, _ := json.Marshal(check)
		return errors.Join(l.PublishResult(ctx, data), l.Ack(ctx))
	}
	var it item.Item
	if err := json.Unmarshal(l.Payload(), &it); err != nil {
		return err
	}
	res := item.Result{Schema: item.SchemaVersion, Item: it, Outcome: item.OutcomeDone, Seconds: seconds, Pool: pool, Finished: time.Now().UTC()}
	var err error
	if outcome != nil {
		err = held(ctx, l, func() error { return outcome(it, l.Attempt()) })
	}
	switch {
	case errors.Is(err, errHang):
		return nil
	case errors.Is(err, errDead):
		res.Outcome, res.Reason = item.OutcomeDead, err.Error()
	case err != nil:
		res.Outcome, res.Reason = item.OutcomeFailed, err.Error()
	}
	data, _ := json.Marshal(res)
	if err == nil {
		key := cmp.Or(tc.output, campaign) + "/" + item.Key(it.ID, item.FileResult)
		if err := cmp.Or(tc.workers, tc.store).Create(ctx, key, data); err != nil && !errors.Is(err, storage.ErrExists) {
			return err
		}
	}
	data, _ = json.Marshal(res)
	if err := l.PublishResult(ctx, data); err != nil {
		return err
	}
	return l.Ack(ctx)
}

// held calls f, which may wait for longer than a lease, and extends the lease meanwhile, as a worker does.
func held(ctx context.Context, l *queue.Lease, f func() error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for tick := time.Tick(500 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick:
				_ = queue.Extend(ctx, l) // without success, the lease ends, as a worker's does
			}
		}
	}()
	return f()
}

// set sets the outcome of items.
func (tc *testCluster) set(outcome func(it item.Item, attempt int) error) {
	tc.mu.Lock()
	defer tc.mu.Unlock()
	tc.outcome = outcome
}

// gated makes workers wait for permit before they restore an item.
func (tc *testCluster) gated() chan struct{} {
	gate := make(chan struct{}, 100)
	tc.set(func(item.Item, int) error {
		<-gate
		return nil
	})
	return gate
}

// permit lets workers restore n items.
func permit(gate chan<- struct{}, n int) {
	for range n {
		gate <- struct{}{}
	}
}

// await waits until a campaign's status is as wanted.
func (tc *testCluster) await(id, what string, wanted func(s record.CampaignStatus) bool) record.CampaignStatus {
	tc.t.Helper()
	var s record.CampaignStatus
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var err error
		s, err = board.Status(tc.t.Context(), tc.board, id)
		if errors.Is(err, queue.ErrNoRecord) {
			continue // the board was lost
		}
		must(tc.t, err)
		if wanted(s) {
			return s
		}
	}
	tc.t.Fatalf("campaign %s does not reach %s; it is %s (%s), %+v", id, what, s.Campaign.Phase, s.Campaign.Reason, s.Status)
	return s
}

func (tc *testCluster) awaitPhase(id string, p record.Phase) record.CampaignStatus {
	tc.t.Helper()
	return tc.await(id, string(p), func(s record.CampaignStatus) bool { return s.Campaign.Phase == p && s.Status.Phase == p })
}

// awaitPulls waits until workers have pulled without getting an item n more times, or have started more than limit
// items.
func (tc *testCluster) awaitPulls(n, limit int) {
	tc.t.Helper()
	tc.mu.Lock()
	n += tc.empty
	tc.mu.Unlock()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		tc.mu.Lock()
		done := tc.empty >= n || len(tc.started) > limit
		tc.mu.Unlock()
		if done {
			return
		}
	}
	tc.t.Fatal("the workers do not pull")
}

// count returns the number of items that workers have started.
func (tc *testCluster) count() int {
	tc.mu.Lock()
	defer tc.mu.Unlock()
	return len(tc.started)
}

// results counts the results in storage.
func (tc *testCluster) results(campaign string) int {
	n := 0
	for info, err := range tc.store.List(tc.t.Context(), campaign+"/items/") {
		must(tc.t, err)
		if strings.HasSuffix(info.Key, "/"+item.FileResult) {
			n++
		}
	}
	return n
}

package coordinator_test

import (
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
	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/raster"
	"ddiff/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait that a working program ends much sooner.
const patience = 30 * time.Second

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// yard is a cluster in one process: a real queue server, a store, coordinators that come and
// go, and workers that only pretend to restore.
type yard struct {
	t     *testing.T
	dir   string // of the dataset
	store *storage.Memory
	setup func()
	board *queue.Board
	open  func(ctx context.Context, campaign string, attempts int) (*queue.Queue, error)
	// attach opens the queue of a campaign as a worker does.
	attach func(ctx context.Context, campaign string) (*queue.Queue, error)
	sweep  func(ctx context.Context) error
	log    *slog.Logger

	mu      sync.Mutex
	outcome func(it manifest.Item, attempt int) error // nil: done
	check   manifest.Checked
	begun   map[string]int // how often workers began each item
}

// errDead makes a worker give an item up, errHang never come back to it.
var (
	errDead = errors.New("given up")
	errHang = errors.New("hangs")
)

func newYard(t *testing.T, images int) *yard {
	t.Helper()
	server, err := queue.StartEmbedded(t.Context(), queue.EmbeddedConfig{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(server.Stop)
	nc, err := server.Connect()
	must(t, err)
	y := &yard{
		t: t, dir: t.TempDir(), store: storage.NewMemory(), begun: map[string]int{},
		check: manifest.Checked{Worker: "pretender", Checks: []manifest.Check{{Name: "prior card", Found: "good"}}},
		log:   slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo})),
	}
	y.setup = func() { must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{})) }
	y.setup()
	y.board, err = queue.OpenBoard(t.Context(), nc)
	must(t, err)
	config := func(campaign string, attempts int) queue.Config {
		return queue.Config{Campaign: campaign, AckWait: 2 * time.Second, MaxAttempts: attempts, RetryBase: 10 * time.Millisecond, RetryMax: 20 * time.Millisecond}
	}
	y.open = func(ctx context.Context, campaign string, attempts int) (*queue.Queue, error) {
		return queue.Open(ctx, nc, config(campaign, attempts))
	}
	y.attach = func(ctx context.Context, campaign string) (*queue.Queue, error) {
		return queue.Attach(ctx, nc, config(campaign, 3))
	}
	y.sweep = func(ctx context.Context) error {
		return queue.Sweep(ctx, nc, queue.SweepConfig{Outcome: func(_ string, d queue.DeadLetter) ([]byte, error) {
			return json.Marshal(manifest.Result{Item: manifest.Item{ID: d.ID}, Outcome: manifest.OutcomeDead, Reason: d.Reason})
		}})
	}
	for i := range images {
		y.image(fmt.Sprintf("image%03d", i), i)
	}
	return y
}

// image writes an image of its own bytes into the dataset.
func (y *yard) image(name string, seed int) {
	img := &raster.Image{Channels: 3, Height: 32, Width: 32, Pix: make([]float32, 3*32*32)}
	for k := range img.Pix {
		img.Pix[k] = float32((k*7+seed*13)%255)/127.5 - 1
	}
	data, err := raster.EncodePNG(img)
	must(y.t, err)
	must(y.t, os.WriteFile(filepath.Join(y.dir, name+".png"), data, 0o644))
}

func (y *yard) spec(name string) *manifest.Spec {
	spec := manifest.Default()
	spec.Name, spec.Dataset.Path, spec.Dataset.Size, spec.Steps = name, y.dir, 32, 10
	spec.Tasks = []manifest.TaskSpec{{Name: "super_resolution"}, {Name: "hdr"}}
	must(y.t, spec.Validate(shard.Vocabulary()))
	return spec
}

// submit puts a campaign on the board.
func (y *yard) submit(name string, canary int) string {
	y.t.Helper()
	c, created, err := coordinator.Submit(y.t.Context(), y.board, y.spec(name), coordinator.Order{Canary: canary}, time.Now())
	must(y.t, err)
	if !created {
		y.t.Fatalf("campaign %s was there already", c.ID)
	}
	return c.ID
}

// lead starts a coordinator; stop ends it and waits for its end.
func (y *yard) lead() (stop func()) {
	return y.leadWith(func(*coordinator.Config) {})
}

func (y *yard) leadWith(change func(c *coordinator.Config)) (stop func()) {
	y.t.Helper()
	cfg := coordinator.Config{
		Board: y.board, Open: y.open, Sweep: y.sweep, Store: y.store, StoreAddress: "memory", Sources: manifest.Files{},
		AckWait: 2 * time.Second, Tick: 50 * time.Millisecond, Stall: 500 * time.Millisecond,
		Logger: y.log, Tracer: noop.NewTracerProvider().Tracer(""),
	}
	change(&cfg)
	service, err := coordinator.New(cfg)
	must(y.t, err)
	return y.background(service.Lead)
}

// background runs f until the test ends or stop is called.
func (y *yard) background(f func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := f(ctx); err != nil && ctx.Err() == nil {
			y.t.Errorf("ended by itself: %v", err)
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	y.t.Cleanup(stop)
	return stop
}

// work starts a worker that pretends to restore the items of a campaign.
func (y *yard) work(campaign string) (stop func()) {
	return y.background(func(ctx context.Context) error {
		for ctx.Err() == nil {
			q, err := y.attach(ctx, campaign)
			if err == nil {
				err = y.pull(ctx, q, campaign)
			}
			// A queue that is dropped and made anew does not answer for a moment.
			passes := errors.Is(err, queue.ErrNotReady) || errors.Is(err, queue.ErrUnavailable)
			if err != nil && ctx.Err() == nil && !passes {
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

func (y *yard) pull(ctx context.Context, q *queue.Queue, campaign string) error {
	for ctx.Err() == nil {
		leases, err := q.Lease(ctx, 1, 200*time.Millisecond)
		if err != nil {
			return err
		}
		for _, l := range leases {
			if err := y.restore(context.WithoutCancel(ctx), l, campaign); err != nil {
				return err
			}
		}
	}
	return nil
}

// restore does with an item what a worker does at the end.
func (y *yard) restore(ctx context.Context, l *queue.Lease, campaign string) error {
	y.mu.Lock()
	y.begun[l.ID()]++
	outcome, check := y.outcome, y.check
	y.mu.Unlock()
	if l.ID() == manifest.IDPreflight {
		data, _ := json.Marshal(check)
		return errors.Join(l.PublishResult(ctx, data), l.Ack(ctx))
	}
	var it manifest.Item
	if err := json.Unmarshal(l.Payload(), &it); err != nil {
		return err
	}
	res := manifest.Result{Schema: manifest.SchemaVersion, Item: it, Outcome: manifest.OutcomeDone, Finished: time.Now().UTC()}
	var err error
	if outcome != nil {
		err = outcome(it, l.Attempt())
	}
	switch {
	case errors.Is(err, errHang):
		return nil
	case errors.Is(err, errDead):
		res.Outcome, res.Reason = manifest.OutcomeDead, err.Error()
	case err != nil:
		res.Outcome, res.Reason = manifest.OutcomeFailed, err.Error()
	}
	data, _ := json.Marshal(res)
	if err == nil {
		key := campaign + "/" + manifest.ItemKey(it.ID, manifest.FileResult)
		if err := y.store.Create(ctx, key, data); err != nil && !errors.Is(err, storage.ErrExists) {
			return err
		}
	}
	if err := l.PublishResult(ctx, data); err != nil {
		return err
	}
	if res.Outcome == manifest.OutcomeDead {
		return l.Bury(ctx, queue.Dead{ID: it.ID, Reason: res.Reason, Attempts: l.Attempt(), Worker: "pretender"})
	}
	return l.Ack(ctx)
}

// set changes what workers make of items.
func (y *yard) set(outcome func(it manifest.Item, attempt int) error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.outcome = outcome
}

// await waits until a campaign's standing is as wanted.
func (y *yard) await(id, what string, wanted func(s coordinator.CampaignStatus) bool) coordinator.CampaignStatus {
	y.t.Helper()
	var s coordinator.CampaignStatus
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var err error
		s, err = coordinator.Status(y.t.Context(), y.board, id)
		if errors.Is(err, queue.ErrNoRecord) {
			continue // the board was lost
		}
		must(y.t, err)
		if wanted(s) {
			return s
		}
	}
	y.t.Fatalf("campaign %s does not come to %s; it is %s (%s), %+v", id, what, s.Campaign.Phase, s.Campaign.Reason, s.Status)
	return s
}

func (y *yard) awaitPhase(id string, p manifest.Phase) coordinator.CampaignStatus {
	y.t.Helper()
	return y.await(id, string(p), func(s coordinator.CampaignStatus) bool { return s.Campaign.Phase == p && s.Status.Phase == p })
}

// results counts the results in storage.
func (y *yard) results(campaign string) int {
	n := 0
	for info, err := range y.store.List(y.t.Context(), campaign+"/items/") {
		must(y.t, err)
		if strings.HasSuffix(info.Key, "/"+manifest.FileResult) {
			n++
		}
	}
	return n
}

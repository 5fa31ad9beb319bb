package coordinator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"ddiff/coordinator"
	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

// localCampaign is a campaign and its output, which several runs use one after the other.
type localCampaign struct {
	t     *testing.T
	spec  *manifest.Spec
	store storage.Store
	rows  shard.Rows
	// finished replaces the recording of announcements, if set.
	finished func(res item.Result, found bool)
	reported func()
}

func newLocalCampaign(t *testing.T, dir string, tasks ...string) *localCampaign {
	t.Helper()
	spec := manifest.Default()
	spec.Name, spec.Dataset.Path, spec.Dataset.Size, spec.Steps = "test", dir, 32, 10
	for _, task := range tasks {
		spec.Tasks = append(spec.Tasks, item.Task{Name: task})
	}
	must(t, spec.Validate(manifest.Catalogue{}))
	return &localCampaign{t: t, spec: spec, store: newStore(t)}
}

// announcement is a call of RunConfig.Finished.
type announcement struct {
	outcome item.Outcome
	reason  string
	found   bool
}

// localRun is one run of a campaign. The test is its worker.
type localRun struct {
	*coordinator.Run
	t      *testing.T
	queue  *queue.Queue
	board  *queue.Board
	server *queue.Embedded
	cancel context.CancelFunc
	// ended gets the result of Process.
	ended chan error
	// items and steps are those of RunConfig.Read, valid after awaitPublished.
	items, steps int

	leases map[string]*queue.Lease // by identity, until publish

	mu       sync.Mutex
	finished map[string]announcement // by name and task
	skipped  []string
}

func itemName(it item.Item) string { return it.Name + " " + it.Task }

// config describes a run with a queue server of its own. All required fields are set.
func (c *localCampaign) config(r *localRun) coordinator.RunConfig {
	t := c.t
	t.Helper()
	server, nc, kv := boardtest.Start(t)
	open := func(ctx context.Context, campaign string, attempts int) (*queue.Queue, error) {
		return queue.Open(ctx, nc, queue.Config{Campaign: campaign, MaxAttempts: attempts})
	}
	q, err := open(t.Context(), c.spec.ID(""), c.spec.Attempts)
	must(t, err)
	r.server, r.board, r.queue = server, kv, q
	p, err := prior.Open(prior.Bundled)
	must(t, err)
	finished := c.finished
	if finished == nil {
		finished = r.onAnnounced
	}
	return coordinator.RunConfig{
		Spec: c.spec, Prior: p, Board: r.board, Open: open, Scratch: newStore(t), Store: c.store,
		Sources: manifest.Files{}, Rows: c.rows, Read: r.onRead, Finished: finished, Reported: c.reported, Skipped: r.onSkipped,
		Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
		Tracer: noop.NewTracerProvider().Tracer(""),
	}
}

// start starts Process in the background.
func (c *localCampaign) start() *localRun {
	c.t.Helper()
	r := &localRun{t: c.t, ended: make(chan error, 1), leases: map[string]*queue.Lease{}, finished: map[string]announcement{}}
	var err error
	r.Run, err = coordinator.NewRun(c.config(r))
	must(c.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.ended <- r.Process(ctx)
	}()
	c.t.Cleanup(func() {
		cancel()
		<-done
	})
	return r
}

func (r *localRun) onRead(items, steps int, _ bool) { r.items, r.steps = items, steps }

func (r *localRun) onAnnounced(res item.Result, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := itemName(res.Item)
	if _, twice := r.finished[name]; twice {
		r.t.Errorf("item %s is announced twice", name)
	}
	r.finished[name] = announcement{res.Outcome, res.Reason, found}
}

func (r *localRun) onSkipped(e manifest.Skip) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skipped = append(r.skipped, filepath.Base(e.Path))
}

// announced returns the announcement of an item.
func (r *localRun) announced(name string) announcement {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.finished[name]
}

// awaitPublished waits until all items are published.
func (r *localRun) awaitPublished() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for change, err := range r.board.Watch(ctx, record.KeyStatusPrefix) {
		must(r.t, err)
		var s record.Status
		if len(change.Data) > 0 {
			must(r.t, json.Unmarshal(change.Data, &s))
		}
		if s.Complete && s.Windows > 0 {
			return
		}
	}
	r.t.Fatal("the items are not published to the end")
}

// await waits for the end of Process and returns its error.
func (r *localRun) await() error {
	r.t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(patience):
		r.t.Fatalf("the run does not end; counts %+v", r.Counts())
	}
	return nil
}

// interrupt cancels the run and waits for its end.
func (r *localRun) interrupt() {
	r.t.Helper()
	r.cancel()
	if err := r.await(); !errors.Is(err, context.Canceled) {
		r.t.Errorf("the interrupted run returns %v", err)
	}
}

// lease leases n items, which must be all that are published.
func (r *localRun) lease(n int) []item.Item {
	t := r.t
	t.Helper()
	r.awaitPublished()
	var items []item.Item
	for len(items) < n {
		leases, err := r.queue.Lease(t.Context(), 1, patience)
		must(t, err)
		if len(leases) != 1 {
			t.Fatalf("%d items are in the queue, want %d", len(items), n)
		}
		var it item.Item
		must(t, json.Unmarshal(leases[0].Payload(), &it))
		if it.ID != leases[0].ID() {
			t.Errorf("the message of item %s has the id %s", it.ID, leases[0].ID())
		}
		items = append(items, it)
		r.leases[it.ID] = leases[0]
	}
	more, err := r.queue.Lease(t.Context(), 1, 50*time.Millisecond)
	must(t, err)
	if len(more) > 0 {
		t.Fatalf("more than %d items are in the queue", n)
	}
	return items
}

// result is a worker's result of an item.
func result(it item.Item, o item.Outcome, reason string) item.Result {
	return item.Result{Schema: item.SchemaVersion, Item: it, Outcome: o, Reason: reason, Steps: 10, Seconds: 1, Attempt: 1}
}

// put stores a result, as a worker does.
func (c *localCampaign) put(r item.Result) {
	c.t.Helper()
	data, err := json.Marshal(r)
	must(c.t, err)
	must(c.t, c.store.Create(c.t.Context(), item.Key(r.Item.ID, item.FileResult), data))
}

// publish publishes an outcome and acknowledges its item, as a worker does.
func (r *localRun) publish(res item.Result) {
	r.t.Helper()
	data, err := json.Marshal(res)
	must(r.t, err)
	must(r.t, r.queue.PublishResult(r.t.Context(), res.Item.ID, 0, data))
	if l := r.leases[res.Item.ID]; l != nil {
		must(r.t, l.Ack(r.t.Context()))
		delete(r.leases, res.Item.ID)
	}
}

// restore stores and publishes the results of all items.
func (c *localCampaign) restore(r *localRun, items []item.Item) {
	c.t.Helper()
	for _, it := range items {
		res := result(it, item.OutcomeDone, "")
		c.put(res)
		r.publish(res)
	}
}

func (r *localRun) wantCounts(want record.Counts) {
	r.t.Helper()
	if got := r.Counts(); got != want {
		r.t.Fatalf("counts are %+v, want %+v", got, want)
	}
}

// writeImages writes one image per number into a new directory; equal numbers give equal bytes.
func writeImages(t *testing.T, numbers ...int) string {
	t.Helper()
	dir := t.TempDir()
	for i, number := range numbers {
		img := raster.New(3, 32, 32)
		for j := range img.Pix {
			img.Pix[j] = float32((j*(number+3))%97)/48 - 1
		}
		data, err := raster.EncodePNG(img)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("image%d.png", i)), data, 0o644))
	}
	return dir
}

// names returns the names of items, in order.
func names(items []item.Item) []string {
	var out []string
	for _, it := range items {
		out = append(out, itemName(it))
	}
	return slices.Clip(out)
}

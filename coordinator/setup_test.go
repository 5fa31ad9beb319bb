package coordinator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"

	"ddiff/coordinator"
	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/prior"
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

// bench is one campaign's queue and store, over which coordinators come and go.
type bench struct {
	spec  *manifest.Spec
	queue *queue.Queue
	store *storage.Memory
	// finished and skipped are what the last coordinator told.
	finished map[string]told
	skipped  []string
	// heard, if not nil, is called for every item that is told.
	heard func()
}

type told struct {
	outcome manifest.Outcome
	reason  string
	found   bool
}

// newBench makes a campaign over a directory of images.
func newBench(t *testing.T, dir string, tasks ...string) *bench {
	t.Helper()
	spec := manifest.Default()
	spec.Name, spec.Dataset.Path, spec.Dataset.Size, spec.Steps = "test", dir, 32, 10
	for _, task := range tasks {
		spec.Tasks = append(spec.Tasks, manifest.TaskSpec{Name: task})
	}
	must(t, spec.Validate(shard.Vocabulary()))
	server, err := queue.StartEmbedded(t.Context(), queue.EmbeddedConfig{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(server.Stop)
	nc, err := server.Connect()
	must(t, err)
	q, err := queue.Open(t.Context(), nc, queue.Config{Campaign: spec.ID()})
	must(t, err)
	return &bench{spec: spec, queue: q, store: storage.NewMemory()}
}

func (b *bench) config(t *testing.T) coordinator.Config {
	return coordinator.Config{
		Spec: b.spec, Prior: tinyPrior(t), Queue: b.queue, Store: b.store, Sources: manifest.Files{},
		Finished: func(r manifest.Result, found bool) {
			if _, twice := b.finished[key(r.Item)]; twice {
				t.Errorf("item %s is told twice", key(r.Item))
			}
			b.finished[key(r.Item)] = told{r.Outcome, r.Reason, found}
			if b.heard != nil {
				b.heard()
			}
		},
		Skipped: func(path string) { b.skipped = append(b.skipped, filepath.Base(path)) },
		Logger:  slog.New(slog.DiscardHandler), Tracer: noop.NewTracerProvider().Tracer(""),
	}
}

func key(it manifest.Item) string { return it.Name + " " + it.Task }

// shard makes a new coordinator and shards the campaign.
func (b *bench) shard(t *testing.T) *coordinator.Coordinator {
	t.Helper()
	b.finished, b.skipped, b.heard = map[string]told{}, nil, nil
	c, err := coordinator.New(b.config(t))
	must(t, err)
	must(t, c.Shard(t.Context()))
	return c
}

// lease takes n items out of the queue, which must be all there are.
func (b *bench) lease(t *testing.T, n int) []manifest.Item {
	t.Helper()
	var items []manifest.Item
	for len(items) < n {
		leases, err := b.queue.Lease(t.Context(), 1, patience)
		must(t, err)
		if len(leases) != 1 {
			t.Fatalf("%d items are in the queue, want %d", len(items), n)
		}
		var it manifest.Item
		must(t, json.Unmarshal(leases[0].Payload(), &it))
		if it.ID != leases[0].ID() {
			t.Errorf("item %s travels as %s", it.ID, leases[0].ID())
		}
		items = append(items, it)
		must(t, leases[0].Ack(t.Context()))
	}
	more, err := b.queue.Lease(t.Context(), 1, 50*time.Millisecond)
	must(t, err)
	if len(more) > 0 {
		t.Fatalf("more than %d items are in the queue", n)
	}
	return items
}

// result is what a worker would make of an item.
func result(it manifest.Item, o manifest.Outcome, reason string) manifest.Result {
	return manifest.Result{Schema: manifest.SchemaVersion, Item: it, Outcome: o, Reason: reason, Steps: 10, Seconds: 1}
}

// keep writes a result to the store, as a worker does.
func (b *bench) keep(t *testing.T, r manifest.Result) {
	t.Helper()
	data, err := json.Marshal(r)
	must(t, err)
	must(t, b.store.Create(t.Context(), manifest.ItemKey(r.Item.ID, manifest.FileResult), data))
}

// tell publishes a result event.
func (b *bench) tell(t *testing.T, r manifest.Result) {
	t.Helper()
	data, err := json.Marshal(r)
	must(t, err)
	must(t, b.queue.PublishResult(t.Context(), r.Item.ID, 0, data))
}

// follow runs Follow to its end, which must come by itself.
func follow(t *testing.T, c *coordinator.Coordinator) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, c.Follow(ctx))
	must(t, ctx.Err())
}

func wantCounts(t *testing.T, c *coordinator.Coordinator, want coordinator.Counts) {
	t.Helper()
	if got := c.Counts(); got != want {
		t.Fatalf("counts %+v, want %+v", got, want)
	}
}

// images writes pictures, equal ones for equal numbers.
func images(t *testing.T, numbers ...int) string {
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

// tinyPrior is a score model that finds a tenth of the image to be noise.
func tinyPrior(t *testing.T) *prior.Prior {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, -1, 3, -1, -1)
	g.Input("t", onnx.Int64, -1)
	g.Output("eps", g.Mul(x, g.Scalar(0.1)))
	data, err := g.Marshal("tiny")
	must(t, err)
	data = onnxtest.WithMetadata(t, data, map[string]string{
		"ddiff.card": "1", "ddiff.name": "tiny", "ddiff.prediction": "epsilon", "ddiff.schedule": "linear:1e-4:0.02:1000",
		"ddiff.range": "-1..1", "ddiff.channels": "3", "ddiff.multiple_of": "8", "ddiff.learned_variance": "false", "ddiff.license": "CC0-1.0",
	})
	p, err := prior.Load("tiny.onnx", data)
	must(t, err)
	return p
}

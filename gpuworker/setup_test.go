package gpuworker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"

	"ddiff/gpuworker"
	"ddiff/internal/gpuworker/workertest"
	"ddiff/internal/queue"
	"ddiff/internal/regular"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/solver"
	"ddiff/manifest"
	"ddiff/restore"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/storage"
	"ddiff/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// side is the working size of the images, steps the number of solver steps.
const (
	side  = 32
	steps = 8
)

const patience = workertest.Patience

var (
	must      = workertest.Must
	newQueue  = workertest.Queue
	newStore  = workertest.Store
	waitUntil = workertest.Until
)

// engine predicts a tenth of the image as noise. It solves one step per call, so that a worker can stop after each step.
func engine(t *testing.T) *restore.Engine {
	t.Helper()
	return engineIn(t, "")
}

// engineIn is engine with a default precision.
func engineIn(t *testing.T, p onnxruntime.Precision) *restore.Engine {
	t.Helper()
	return workertest.Engine(t, workertest.Share(t, 0.1), solver.Build{Precision: p})
}

// store is the store of a worker; tests wrap storage.Dir.
type store = storage.Store

// config configures a worker with batches of up to four items.
func config(t *testing.T, q *queue.Queue, s store) gpuworker.Config {
	t.Helper()
	in, err := telemetry.NewInstruments(metricnoop.NewMeterProvider().Meter(""))
	must(t, err)
	return gpuworker.Config{
		Work: gpuworker.Single{Queue: q, Items: gpuworker.Assignment{
			Campaign: "test", Store: s, Sources: manifest.Files{}, Engine: engine(t), Batch: 4,
		}},
		Name: "tester", Version: "test", AckWait: patience, Idle: 100 * time.Millisecond, WholeResults: true,
		Logger: slog.New(slog.DiscardHandler), Tracer: noop.NewTracerProvider().Tracer(""), Instruments: in,
	}
}

// single changes the dispatcher of a worker.
func single(cfg *gpuworker.Config, change func(*gpuworker.Single)) {
	s := cfg.Work.(gpuworker.Single)
	change(&s)
	cfg.Work = s
}

// batchOf sets the number of items that are solved together.
func batchOf(cfg *gpuworker.Config, n int) {
	single(cfg, func(s *gpuworker.Single) { s.Items.Batch = n })
}

// dead returns the outcomes of the campaign's dead items.
func dead(t *testing.T, q *queue.Queue) (all []item.Result) {
	t.Helper()
	if last, err := q.LastResult(t.Context()); last == 0 {
		must(t, err)
		return nil
	}
	for event, err := range q.Results(t.Context(), 0) {
		must(t, err)
		var r item.Result
		must(t, json.Unmarshal(event.Payload, &r))
		if r.Outcome == item.OutcomeDead {
			all = append(all, r)
		}
		if event.Behind == 0 {
			break
		}
	}
	return all
}

// image writes an image that depends on number, and returns it as the source of an item.
func image(t *testing.T, number int) *item.Source {
	t.Helper()
	img := raster.New(3, side, side)
	for i := range img.Pix {
		img.Pix[i] = float32((i*(number+3))%97)/48 - 1
	}
	data, err := raster.EncodePNG(img)
	must(t, err)
	return source(t, fmt.Sprintf("image%d.png", number), data)
}

// measurement writes a y with equal values.
func measurement(t *testing.T, name string, value float32) *item.Source {
	t.Helper()
	values := make([]float32, 3*side/4*side/4)
	for i := range values {
		values[i] = value
	}
	data, err := raster.EncodeNPY([]int{3, side / 4, side / 4}, values)
	must(t, err)
	return source(t, name, data)
}

func source(t *testing.T, name string, data []byte) *item.Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, data, 0o644))
	return &item.Source{Path: path, SHA256: regular.SHA256(data)}
}

// item returns an item for super-resolution of an image or a measurement.
func newItem(t *testing.T, name string, img, y *item.Source, change ...func(method.Settings) method.Settings) item.Item {
	t.Helper()
	cfg, err := method.Builtin().Resolve(method.Request{Method: "ddiff", Preset: "gradient", Task: "super_resolution", Steps: steps}, 1000)
	must(t, err)
	for _, c := range change {
		cfg = c(cfg)
	}
	raw, err := json.Marshal(cfg)
	must(t, err)
	op, err := operator.Builtin().New("super_resolution", nil, operator.Shape{Channels: 3, Height: side, Width: side})
	must(t, err)
	it := item.Item{
		Campaign: "test", Name: name, Image: img, Measurement: y, Width: side, Height: side, Fit: item.FitCenterCrop,
		Task: "super_resolution", Params: op.Params, Sigma: 0.05, Method: "ddiff", Solver: raw, Prior: regular.SHA256(workertest.Share(t, 0.1)),
	}
	must(t, it.Identify())
	return it
}

// items returns n different items.
func items(t *testing.T, n int) []item.Item {
	t.Helper()
	var out []item.Item
	for i := range n {
		out = append(out, newItem(t, fmt.Sprintf("image%d", i), image(t, i), nil))
	}
	return out
}

func publish(t *testing.T, q *queue.Queue, items ...item.Item) {
	t.Helper()
	for _, it := range items {
		data, err := json.Marshal(it)
		must(t, err)
		must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "class", ID: it.ID, Payload: data}}))
	}
}

// running is a running worker.
type running struct {
	drain context.CancelFunc
	ended chan error
}

func start(t *testing.T, cfg gpuworker.Config) *running {
	t.Helper()
	_, r := begin(t, cfg)
	return r
}

// begin starts a worker that the test also observes.
func begin(t *testing.T, cfg gpuworker.Config) (*gpuworker.Worker, *running) {
	t.Helper()
	w, err := gpuworker.New(cfg)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{cancel, make(chan error, 1)}
	go func() { r.ended <- w.Run(ctx) }()
	t.Cleanup(cancel)
	return w, r
}

// wait waits for Run to return nil.
func (r *running) wait(t *testing.T) {
	t.Helper()
	select {
	case err := <-r.ended:
		must(t, err)
	case <-time.After(patience):
		t.Fatal("timeout: the worker runs")
	}
}

// waitFor waits for Run to return an error, and returns its text.
func (r *running) waitFor(t *testing.T, want error) string {
	t.Helper()
	select {
	case err := <-r.ended:
		if !errors.Is(err, want) {
			t.Fatalf("Run returned %v, want %v", err, want)
		}
		return err.Error()
	case <-time.After(patience):
		t.Fatal("timeout: the worker runs")
	}
	return ""
}

// stop drains the worker.
func (r *running) stop(t *testing.T) {
	t.Helper()
	r.drain()
	r.wait(t)
}

// results waits for the events of n items, and returns the results by name, or by identity without a name.
func results(t *testing.T, q *queue.Queue, n int) map[string]item.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	found := map[string]item.Result{}
	for event, err := range q.Results(ctx, 0) {
		must(t, err)
		var r item.Result
		must(t, json.Unmarshal(event.Payload, &r))
		name := r.Item.Name
		if name == "" {
			name = event.ID
		}
		if _, twice := found[name]; twice {
			t.Errorf("item %s has two result events", name)
		}
		if found[name] = r; len(found) == n {
			return found
		}
	}
	t.Fatalf("%d result events, want %d: of %v", len(found), n, slices.Collect(maps.Keys(found)))
	return nil
}

// wantEmpty waits until the queue is empty: the server counts a buried item for a moment longer.
func wantEmpty(t *testing.T, q *queue.Queue) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); ; <-tick.C {
		pending, inFlight, err := q.Depth(t.Context())
		must(t, err)
		if pending == 0 && inFlight == 0 {
			return
		}
		if time.Since(begin) > patience {
			t.Fatalf("the queue holds %d pending items and %d in flight, want none", pending, inFlight)
		}
	}
}

func get(t *testing.T, s store, id, name string) []byte {
	t.Helper()
	data, err := s.Get(t.Context(), item.Key(id, name))
	must(t, err)
	return data
}

// samples returns the pixels of an item's restored image.
func samples(t *testing.T, s store, id string) []byte {
	t.Helper()
	img, err := raster.Decode(get(t, s, id, item.FileRestored))
	must(t, err)
	rgb, err := raster.RGB8(img)
	must(t, err)
	return rgb
}

// wantStored checks that the store has an item's result, and files with the result's digests.
func wantStored(t *testing.T, s store, id string) item.Result {
	t.Helper()
	var r item.Result
	must(t, json.Unmarshal(get(t, s, id, item.FileResult), &r))
	if r.Outcome != item.OutcomeDone || r.Item.ID != id || len(r.Artifacts) == 0 {
		t.Errorf("the result of item %s is %+v", id, r)
	}
	for name, want := range r.Artifacts {
		if got := regular.SHA256(get(t, s, id, name)); got != want {
			t.Errorf("item %s: %s has the digest %.12s, want %.12s", r.Item.Name, name, got, want)
		}
	}
	return r
}

// checkpoints counts the stored checkpoints.
func checkpoints(t *testing.T, s *storage.Dir) int {
	t.Helper()
	n := 0
	for _, err := range s.List(t.Context(), "checkpoints/") {
		must(t, err)
		n++
	}
	return n
}

// warm compiles the solver of an item.
func warm(t *testing.T, e *restore.Engine, it item.Item) {
	t.Helper()
	var cfg method.Settings
	must(t, json.Unmarshal(it.Solver, &cfg))
	_, err := e.Solver(t.Context(), restore.Plan{
		Task: it.Task, Params: it.Params, Solver: cfg,
		Image: operator.Shape{Channels: 3, Height: it.Height, Width: it.Width},
	}, 1)
	must(t, err)
}

// Package workertest supplies tests of a worker's packages with tiny priors, their engines, items, queues and stores.
package workertest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"ddiff/internal/queue"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/solver"
	"ddiff/restore"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/storage"
)

// Patience is the timeout of every wait; a correct program needs much less.
const Patience = 60 * time.Second

// Must ends a test with an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Card returns the entries of a test prior's model card.
func Card(name string) map[string]string {
	return map[string]string{
		"ddiff.card": "1", "ddiff.name": name, "ddiff.prediction": "epsilon", "ddiff.schedule": "linear:1e-4:0.02:1000",
		"ddiff.range": "-1..1", "ddiff.channels": "3", "ddiff.multiple_of": "8", "ddiff.learned_variance": "false", "ddiff.license": "CC0-1.0",
	}
}

// Model returns the file of a score model with an expression for the noise in x.
func Model(t *testing.T, noise func(g *onnx.Graph, x onnx.Value) onnx.Value) []byte {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, -1, 3, -1, -1)
	g.Input("t", onnx.Int64, -1)
	g.Output("eps", noise(g, x))
	data, err := g.Marshal("tiny")
	Must(t, err)
	return onnxtest.WithMetadata(t, data, Card("tiny"))
}

// Share returns the file of a score model that predicts a share of the image as noise. It needs almost no time.
func Share(t *testing.T, share float32) []byte {
	t.Helper()
	return Model(t, func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Mul(x, g.Scalar(share)) })
}

// Engine returns an engine of a score model.
func Engine(t *testing.T, model []byte, b solver.Build) *restore.Engine {
	t.Helper()
	p, err := prior.Load("tiny.onnx", model)
	Must(t, err)
	e := restore.NewEngine(onnxtest.Runtime(t), p, restore.Config{Build: b})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// Item returns an item of super-resolution with five steps.
func Item(t *testing.T, e *restore.Engine, width, height int, change ...func(*item.Item)) item.Item {
	t.Helper()
	cfg, err := method.Builtin().Resolve(method.Request{Method: "ddiff", Preset: "natural", Task: operator.SuperResolution, Steps: 5}, 1000)
	Must(t, err)
	raw, err := json.Marshal(cfg)
	Must(t, err)
	op, err := operator.Builtin().New(operator.SuperResolution, nil, operator.Shape{Channels: 3, Height: height, Width: width})
	Must(t, err)
	it := item.Item{
		Campaign: "test", Name: "a", Image: &item.Source{Path: "image", SHA256: strings.Repeat("0", 64)}, Width: width, Height: height,
		Fit: item.FitCenterCrop, Task: operator.SuperResolution, Params: op.Params, Sigma: 0.05, Method: "ddiff", Solver: raw, Prior: e.Prior().SHA256,
	}
	for _, c := range change {
		c(&it)
	}
	Must(t, it.Identify())
	return it
}

// Queue returns a queue on its own server, with immediate retries. Default: the campaign test and long leases.
func Queue(t *testing.T, cfg queue.Config) *queue.Queue {
	t.Helper()
	server, err := queue.StartEmbedded(t.Context(), queue.EmbeddedConfig{Dir: t.TempDir()})
	Must(t, err)
	t.Cleanup(server.Stop)
	nc, err := server.Connect()
	Must(t, err)
	if cfg.Campaign == "" {
		cfg.Campaign = "test"
	}
	if cfg.AckWait == 0 {
		cfg.AckWait = Patience
	}
	cfg.RetryBase = time.Millisecond
	q, err := queue.Open(t.Context(), nc, cfg)
	Must(t, err)
	return q
}

// Store returns an empty store in a directory of the test.
func Store(t *testing.T) *storage.Dir {
	t.Helper()
	s, err := storage.NewDir(t.TempDir())
	Must(t, err)
	return s
}

// Fill publishes items, and returns when a lease without a wait gets them: the consumer learns of an item later than
// the stream.
func Fill(t *testing.T, q *queue.Queue, ids ...string) {
	t.Helper()
	before, _, err := q.Depth(t.Context())
	Must(t, err)
	for _, id := range ids {
		Must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "class", ID: id, Payload: []byte("{}")}}))
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		pending, _, err := q.Depth(t.Context())
		switch {
		case err != nil:
			t.Fatal(err)
		case pending == before+uint64(len(ids)):
			return
		case time.Now().After(deadline):
			t.Fatalf("%d items wait in the queue, want %d more than %d", pending, len(ids), before)
		}
	}
}

// Until waits for a condition.
func Until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); !ok(); <-tick.C {
		if time.Since(begin) > Patience {
			t.Fatalf("timeout: %s", what)
		}
	}
}

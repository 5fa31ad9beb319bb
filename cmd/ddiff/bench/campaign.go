package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"ddiff/coordinator/shard"
	"ddiff/internal/cli"
	"ddiff/internal/cli/embedded"
	"ddiff/internal/regular"
	"ddiff/manifest"
	"ddiff/restore"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
	"ddiff/restore/prior"
	"ddiff/restore/raster"
)

// timing is the measurement of one campaign, in milliseconds per step of a batch.
type timing struct {
	network   float64 // the score network alone
	campaign  float64
	solver    float64 // the solver alone, 0 without PyTorch
	float32   float64 // the solver alone in float32
	provider  string
	precision onnxruntime.Precision
}

// share returns the network's share of the campaign's time.
func (t timing) share() float64 { return t.network / t.campaign }

func (t timing) ofCampaign() float64 { return t.campaign }

// writePhotographs writes o.items distinct photographs to a new directory. It cycles through the given photographs and
// changes one pixel of each copy.
func writePhotographs(o benchOptions, dir string) ([]string, error) {
	entries, err := filepath.Glob(filepath.Join(o.images, "*.png"))
	if err != nil || len(entries) == 0 {
		return nil, fmt.Errorf("%s contains no PNG; name a directory of photographs", o.images)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	var out []string
	for i := range o.items {
		data, err := regular.Read(entries[i%len(entries)], raster.MaxBytes)
		if err != nil {
			return nil, err
		}
		img, err := raster.Decode(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", entries[i%len(entries)], err)
		}
		img.Pix[0] = float32(i)/128 - 1 // distinct images have distinct identities
		if data, err = raster.EncodePNG(img); err != nil {
			return nil, err
		}
		path := filepath.Join(dir, fmt.Sprintf("%03d.png", i))
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return nil, err
		}
		out = append(out, path)
	}
	return out, nil
}

// benchNetwork is the bare score network on the runtime, and in the streams, of a campaign's solver.
type benchNetwork struct {
	chosen       func() *onnxruntime.Runtime // by the engine at this time
	runtime      *onnxruntime.Runtime
	milliseconds func() (float64, error) // of one evaluation
	close        func()
}

// openNetwork compiles the network for batches of n.
func (o benchOptions) openNetwork(ctx context.Context, e embedded.Campaign, n int, precision onnxruntime.Precision) (benchNetwork, error) {
	image := operator.Shape{Channels: e.Prior.Card.Channels, Height: o.size, Width: o.size}
	plan := restore.Plan{Image: image, Precision: precision}
	b := benchNetwork{chosen: func() *onnxruntime.Runtime { return e.Engine.RuntimeFor(plan) }, close: func() {}}
	b.runtime = b.chosen()
	streams := e.Prior.Streams(b.runtime, n, e.Engine.Build(plan).Streams, o.size, o.size)
	net, err := e.Prior.CompileStreams(b.runtime, streams, o.size, o.size, precision)
	if err != nil {
		return b, err
	}
	for _, n := range net {
		n.T.I64[0] = 300
	}
	run := func() error { return net.Run(ctx) }
	b.close = net.Close
	b.milliseconds = func() (float64, error) { return prior.Milliseconds(o.steps/3, 0, run) }
	// The first calls of a session are slower.
	return b, errors.Join(run(), run())
}

// timeCampaign runs one campaign with batches of n in the new directory out, with models that were compiled before, as in a long campaign.
// It times the network alone before and after it, because the machine's speed drifts. alone: it then times the solver alone.
func (o benchOptions) timeCampaign(ctx context.Context, out string, photos []string, task string, n int, alone bool, stderr io.Writer) (timing, error) {
	spec := manifest.Default()
	spec.Name, spec.Output, spec.Batch, spec.Steps = "bench", out, n, o.steps
	spec.Preset = "gradient" // the step of PyTorch's solver
	spec.Dataset = manifest.Dataset{Path: filepath.Dir(photos[0]), Size: o.size, Fit: manifest.FitResize}
	spec.Tasks = []manifest.TaskSpec{{Name: task}}
	spec.Precision = parameter.PrecisionOf(string(o.run.Spec.Precision))
	if err := spec.Validate(shard.Vocabulary()); err != nil {
		return timing{}, cli.Usage(err)
	}
	t := timing{precision: onnxruntime.FP32}
	err := embedded.WithCampaign(ctx, spec, o.run, io.Discard, stderr, func(e embedded.Campaign) error {
		if spec.Precision != "" {
			var err error
			if t.precision, err = onnxruntime.ParsePrecision(string(spec.PrecisionOf(task, spec.Precision))); err != nil {
				return err
			}
		}
		network, err := o.openNetwork(ctx, e, n, t.precision)
		defer func() { network.close() }()
		if err != nil {
			return err
		}
		before, err := network.milliseconds()
		if err != nil {
			return err
		}
		plan, err := o.plan(e, task, t.precision)
		if err != nil {
			return err
		}
		if _, err := e.Engine.Solver(plan, n); err != nil {
			return err
		}
		var begin time.Time // of the work, once the dataset is read
		c, w, err := e.Parts(func(int, int, bool) { begin = time.Now() })
		if err != nil {
			return err
		}
		if err := e.Process(ctx, c, w); err != nil {
			return err
		}
		t.campaign = time.Since(begin).Seconds() * 1000 / float64(o.steps*o.items/n)
		if got := c.Counts(); got.Done != o.items {
			return fmt.Errorf("%d of %d items done", got.Done, o.items)
		}
		if network.runtime != network.chosen() { // the campaign has measured which one is faster
			network.close()
			if network, err = o.openNetwork(ctx, e, n, t.precision); err != nil {
				return err
			}
			if before, err = network.milliseconds(); err != nil {
				return err
			}
		}
		after, err := network.milliseconds()
		t.network, t.provider = (before+after)/2, network.runtime.Provider()
		if err != nil || !alone {
			return err
		}
		if t.solver, err = o.timeSolver(ctx, e, task, n, t.precision); err != nil || t.precision == onnxruntime.FP32 {
			t.float32 = t.solver
			return err
		}
		t.float32, err = o.timeSolver(ctx, e, task, n, onnxruntime.FP32)
		return err
	})
	return t, err
}

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
func (o benchOptions) openNetwork(ctx context.Context, e embedded.Machine, n int, precision onnxruntime.Precision) (benchNetwork, error) {
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

// spec returns a campaign of some tasks with batches of n. The seed is part of the identity of its items.
func (o benchOptions) spec(tasks []string, n int, photos []string, output string, seed int) *manifest.Spec {
	spec := manifest.Default()
	spec.Name, spec.Output, spec.Batch, spec.Steps, spec.Seed = "bench", output, n, o.steps, uint64(seed)
	spec.Preset = "gradient" // the step of PyTorch's solver
	spec.Dataset = manifest.Dataset{Path: filepath.Dir(photos[0]), Size: o.size, Fit: manifest.FitResize}
	for _, task := range tasks {
		spec.Tasks = append(spec.Tasks, manifest.TaskSpec{Name: task})
	}
	spec.Precision = parameter.PrecisionOf(string(o.run.Spec.Precision))
	return spec
}

// station is where the campaigns of one setting run: a machine with an engine of its own, which keeps the compiled models.
type station struct {
	setting
	machine   embedded.Machine
	output    string
	precision onnxruntime.Precision
	network   benchNetwork
}

// withStations opens a station for each setting, with its models compiled, and closes all after use.
func (o benchOptions) withStations(ctx context.Context, output string, photos []string, settings []setting, stderr io.Writer, use func([]*station) error) error {
	spec := o.spec(o.tasks, o.batches[0], photos, output, 0)
	if err := spec.Validate(shard.Vocabulary()); err != nil {
		return cli.Usage(err)
	}
	build, err := o.run.Build()
	if err != nil {
		return err
	}
	return embedded.WithMachine(ctx, spec, o.run, io.Discard, stderr, func(m embedded.Machine) (err error) {
		var stations []*station
		defer func() {
			for _, s := range stations {
				s.network.close()
				err = errors.Join(err, s.machine.Engine.Close())
			}
		}()
		for _, wanted := range settings {
			s := &station{setting: wanted, machine: m, output: output, precision: onnxruntime.FP32}
			if spec.Precision != "" {
				if s.precision, err = onnxruntime.ParsePrecision(string(spec.PrecisionOf(s.name, spec.Precision))); err != nil {
					return err
				}
			}
			s.machine.Engine = restore.NewEngine(m.Engine.Runtime(), m.Prior, o.run.Engine(build))
			s.network, err = o.openNetwork(ctx, s.machine, s.batch, s.precision)
			stations = append(stations, s)
			if err != nil {
				return err
			}
			plan, err := o.plan(s.machine, s.name, s.precision)
			if err != nil {
				return err
			}
			if _, err := s.machine.Engine.Solver(plan, s.batch); err != nil {
				return err
			}
		}
		return use(stations)
	})
}

// timeCampaign runs a campaign with a new seed, with models that were compiled before, as in a long campaign.
// It times the network alone before and after it, because the machine's speed drifts. alone: it then times the solver alone.
func (o benchOptions) timeCampaign(ctx context.Context, s *station, photos []string, seed int, alone bool) (timing, error) {
	spec := o.spec([]string{s.name}, s.batch, photos, s.output, seed)
	spec.Precision = s.precision
	t := timing{precision: s.precision}
	err := s.machine.WithCampaign(ctx, spec, func(e embedded.Campaign) error {
		before, err := s.network.milliseconds()
		if err != nil {
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
		t.campaign = time.Since(begin).Seconds() * 1000 / float64(o.steps*o.items/s.batch)
		if got := c.Counts(); got.Done != o.items {
			return fmt.Errorf("%d of %d items done", got.Done, o.items)
		}
		if s.network.runtime != s.network.chosen() { // the campaign has measured which one is faster
			s.network.close()
			if s.network, err = o.openNetwork(ctx, s.machine, s.batch, s.precision); err != nil {
				return err
			}
			if before, err = s.network.milliseconds(); err != nil {
				return err
			}
		}
		after, err := s.network.milliseconds()
		t.network, t.provider = (before+after)/2, s.network.runtime.Provider()
		if err != nil || !alone {
			return err
		}
		if t.solver, err = o.timeSolver(ctx, s, s.precision); err != nil || s.precision == onnxruntime.FP32 {
			t.float32 = t.solver
			return err
		}
		t.float32, err = o.timeSolver(ctx, s, onnxruntime.FP32)
		return err
	})
	return t, err
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"ddiff/coordinator/shard"
	"ddiff/internal/regular"
	"ddiff/manifest"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/prior"
	"ddiff/restore/raster"
)

// benchOptions are the flags of bench.
type benchOptions struct {
	run     runOptions
	images  string
	tasks   []string
	batches []int
	size    int
	steps   int
	items   int
	torch   string
	tools   string
}

// lightTasks are the tasks whose operators cost little next to the network.
var lightTasks = []string{operator.SuperResolution, operator.InpaintBox, operator.InpaintRandom, operator.GaussianDeblur, operator.HDR}

func newBenchCommand() *cobra.Command {
	o := benchOptions{run: runOptions{process: processFlags{logLevel: "off"}, quiet: true}}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Compare a campaign's speed with the score network alone and with PyTorch",
		Long: "Run a campaign for each task and batch size, including queue, storage, metrics and pictures. Before and\n" +
			"after each campaign, time the score network alone in the same process. Print milliseconds per step of a\n" +
			"batch and the network's share of the campaign's wall time. With --torch, alternate campaigns with the same\n" +
			"solver and weights in PyTorch; vs_torch is PyTorch's time divided by ddiff's.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runBench(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.images, "images", "examples/images", "directory of photographs (PNG)")
	f.StringSliceVar(&o.tasks, "task", nil, "`tasks` to run, separated by commas (default: all)")
	f.IntSliceVar(&o.batches, "batch", []int{1, 4}, "batch `sizes`, separated by commas")
	f.IntVar(&o.size, "size", 256, "working size in pixels")
	f.IntVar(&o.steps, "steps", 60, "solver steps per image")
	f.IntVar(&o.items, "items", 8, "images per campaign; must be a multiple of each batch size")
	f.StringVar(&o.torch, "torch", "", "Python interpreter with PyTorch (empty: skip PyTorch)")
	f.StringVar(&o.tools, "tools", "tools", "directory that holds ddiff_torch")
	o.run.addDevice(f, onnx.ProviderAuto)
	o.run.addBuild(f)
	o.run.addPrecision(f)
	return cmd
}

// timing is the measurement of one campaign, in milliseconds per step of a batch.
type timing struct {
	task     string
	batch    int
	network  float64 // the score network alone
	campaign float64
}

// share returns the network's share of the campaign's time.
func (t timing) share() float64 { return t.network / t.campaign }

func runBench(ctx context.Context, o benchOptions, stdout, stderr io.Writer) (err error) {
	if len(o.tasks) == 0 {
		o.tasks = operator.Builtin().Names()
	}
	for _, n := range o.batches {
		if n < 1 || o.items%n != 0 {
			return usageError{fmt.Errorf("--items: %d is not a multiple of the batch size %d; choose a multiple", o.items, n)}
		}
	}
	dir, err := os.MkdirTemp("", "ddiff-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	photos, err := writePhotographs(o, filepath.Join(dir, "photos"))
	if err != nil {
		return usageError{fmt.Errorf("--images: %w", err)}
	}
	fmt.Fprintf(stdout, "%-18s %5s %14s %14s %7s\n", "task", "batch", "network ms", "campaign ms", "share")
	var timings []timing
	for _, n := range o.batches {
		for _, task := range o.tasks {
			t, err := o.timeCampaign(ctx, filepath.Join(dir, fmt.Sprintf("%s-%d", task, n)), photos, task, n, stderr)
			if err != nil {
				return fmt.Errorf("bench %s with batch %d: %w", task, n, err)
			}
			fmt.Fprintf(stdout, "%-18s %5d %14.2f %14.2f %7.3f\n", t.task, t.batch, t.network, t.campaign, t.share())
			timings = append(timings, t)
		}
	}
	line := ""
	for _, n := range o.batches {
		line += fmt.Sprintf("share_b%d=%.2f ", n, lowestShare(timings, n, true))
	}
	first := timings[0]
	versus, tuned := "skipped", ""
	if o.torch != "" {
		standard, channelsLast, err := o.compareTorch(ctx, dir, photos, first.task, stdout, stderr)
		if err != nil {
			return err
		}
		versus, tuned = fmt.Sprintf("%.2f", standard), fmt.Sprintf(" vs_torch_channels_last=%.2f", channelsLast)
	}
	line += fmt.Sprintf("vs_torch=%s ms_per_step=%.1f", versus, first.campaign)
	for _, n := range o.batches {
		if s := lowestShare(timings, n, false); s < 1e9 {
			line += fmt.Sprintf(" heavy_b%d=%.2f", n, s)
		}
	}
	fmt.Fprintln(stdout, line+tuned)
	return nil
}

// lowestShare returns the smallest share at a batch size, among the light tasks or among the others; 1e9 without any.
func lowestShare(timings []timing, batch int, light bool) float64 {
	s := 1e9
	for _, t := range timings {
		if t.batch == batch && slices.Contains(lightTasks, t.task) == light {
			s = min(s, t.share())
		}
	}
	return s
}

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

// timeCampaign runs one campaign and times the network alone before and after it: the machine's speed drifts.
func (o benchOptions) timeCampaign(ctx context.Context, out string, photos []string, task string, n int, stderr io.Writer) (timing, error) {
	spec := manifest.Default()
	spec.Name, spec.Output, spec.Batch, spec.Steps = "bench", out, n, o.steps
	spec.Dataset = manifest.Dataset{Path: filepath.Dir(photos[0]), Size: o.size, Fit: manifest.FitResize}
	spec.Tasks = []manifest.TaskSpec{{Name: task}}
	if err := spec.Validate(shard.Vocabulary()); err != nil {
		return timing{}, usageError{err}
	}
	t := timing{task: task, batch: n}
	err := withEmbedded(ctx, spec, o.run, io.Discard, stderr, func(e embedded) error {
		net, err := e.prior.Compile(e.engine.Runtime(), n, o.size, o.size, onnx.FP32)
		if err != nil {
			return err
		}
		defer net.Close()
		net.T.I64[0] = 300
		run := func() error { return net.Run(ctx) }
		// The first calls of a session are slower, so these two do not count either.
		if err := errors.Join(run(), run()); err != nil {
			return err
		}
		before, err := prior.Milliseconds(o.steps/3, 0, run)
		if err != nil {
			return err
		}
		var begin time.Time // of the work, once the dataset is read
		c, w, err := e.parts(func(int, int, bool) { begin = time.Now() })
		if err != nil {
			return err
		}
		if err := e.process(ctx, c, w); err != nil {
			return err
		}
		t.campaign = time.Since(begin).Seconds() * 1000 / float64(o.steps*o.items/n)
		if got := c.Counts(); got.Done != o.items {
			return fmt.Errorf("%d of %d items done", got.Done, o.items)
		}
		after, err := prior.Milliseconds(o.steps/3, 0, run)
		t.network = (before + after) / 2
		return err
	})
	return t, err
}

// compareTorch alternates campaigns with the same solver in PyTorch. It returns the lowest ratio over the batch sizes
// of PyTorch's time per step to ddiff's, for PyTorch's default memory layout and for channels-last, which is faster on
// some CPUs. Above 1, PyTorch is slower.
func (o benchOptions) compareTorch(ctx context.Context, dir string, photos []string, task string, stdout, stderr io.Writer) (standard, channelsLast float64, err error) {
	model, err := filepath.Abs(filepath.Join(dir, "prior.onnx"))
	if err != nil {
		return 0, 0, err
	}
	data, err := prior.Read(prior.Bundled)
	if err != nil {
		return 0, 0, err
	}
	if err := os.WriteFile(model, data, 0o644); err != nil {
		return 0, 0, err
	}
	standard, channelsLast = 1e9, 1e9
	for _, n := range o.batches {
		// The machine's speed drifts, so the ratio of a batch size is the median over alternating runs.
		var standards, channelsLasts []float64
		for round := range torchRounds {
			ours, err := o.timeCampaign(ctx, filepath.Join(dir, fmt.Sprintf("torch-%d-%d", n, round)), photos, task, n, stderr)
			if err != nil {
				return 0, 0, err
			}
			a, err := o.torchStep(ctx, model, task, n, stderr)
			if err != nil {
				return 0, 0, err
			}
			b, err := o.torchStep(ctx, model, task, n, stderr, "--channels-last")
			if err != nil {
				return 0, 0, err
			}
			fmt.Fprintf(stdout, "%-18s %5d %14s %14.2f  PyTorch %.2f ms, channels-last %.2f ms\n", task, n, "", ours.campaign, a, b)
			standards, channelsLasts = append(standards, a/ours.campaign), append(channelsLasts, b/ours.campaign)
		}
		slices.Sort(standards)
		slices.Sort(channelsLasts)
		standard = min(standard, standards[len(standards)/2])
		channelsLast = min(channelsLast, channelsLasts[len(channelsLasts)/2])
	}
	return standard, channelsLast, nil
}

// torchRounds is the number of runs of PyTorch per batch size; it must be odd.
const torchRounds = 3

// torchStep runs the solver in PyTorch and returns its milliseconds per step of a batch.
func (o benchOptions) torchStep(ctx context.Context, model, task string, n int, stderr io.Writer, more ...string) (float64, error) {
	threads := o.run.threads
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	args := []string{"-m", "ddiff_torch.bench", "--prior", model, "--task", task, "--threads", strconv.Itoa(threads),
		"--size", strconv.Itoa(o.size), "--batch", strconv.Itoa(n), "--steps", strconv.Itoa(max(o.steps/3, 2))}
	cmd := exec.CommandContext(ctx, o.torch, append(args, more...)...)
	cmd.Dir, cmd.Stderr = o.tools, stderr
	raw, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("run PyTorch: %w", err)
	}
	var r struct {
		MS float64 `json:"ms_per_step"`
	}
	if err := json.Unmarshal(raw, &r); err != nil || r.MS <= 0 {
		return 0, errors.Join(fmt.Errorf("run PyTorch: read ms_per_step from its output %q", raw), err)
	}
	return r.MS, nil
}

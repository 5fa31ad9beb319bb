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

// The operators of these tasks are cheap beside the network; those of the others are not.
var lightTasks = []string{operator.SuperResolution, operator.InpaintBox, operator.InpaintRandom, operator.GaussianDeblur, operator.HDR}

func newBenchCommand() *cobra.Command {
	o := benchOptions{run: runOptions{process: processFlags{logLevel: "off"}, quiet: true}}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what a campaign costs beside the bare score network, and beside PyTorch",
		Long: "For each task and batch size, runs whole campaigns (queue, storage, metrics and pictures included)\n" +
			"and, before and after each, the bare score network in the same process. Prints milliseconds per step\n" +
			"of a batch, and the share of the network in the campaign's wall time. With PyTorch, the same solver\n" +
			"with the same weights runs in turn with one campaign; vs_torch is PyTorch's time over ours.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runBench(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.images, "images", "examples/images", "photographs to restore")
	f.StringSliceVar(&o.tasks, "task", nil, "tasks (default: all)")
	f.IntSliceVar(&o.batches, "batch", []int{1, 4}, "batch sizes")
	f.IntVar(&o.size, "size", 256, "working size in pixels")
	f.IntVar(&o.steps, "steps", 60, "solver steps per image")
	f.IntVar(&o.items, "items", 8, "images per campaign, a multiple of the batch sizes")
	f.StringVar(&o.torch, "torch", "", "Python interpreter with PyTorch (empty: without)")
	f.StringVar(&o.tools, "tools", "tools", "directory that holds ddiff_torch")
	o.run.addDevice(f, onnx.ProviderAuto)
	o.run.addBuild(f)
	return cmd
}

// figure is what one campaign measured.
type figure struct {
	task  string
	batch int
	bare  float64 // milliseconds per step of the network alone
	whole float64 // milliseconds per step of the campaign
}

func (f figure) share() float64 { return f.bare / f.whole }

func runBench(ctx context.Context, o benchOptions, stdout, stderr io.Writer) (err error) {
	if len(o.tasks) == 0 {
		o.tasks = operator.Builtin().Names()
	}
	for _, n := range o.batches {
		if n < 1 || o.items%n != 0 {
			return usageError{fmt.Errorf("--items: %d is not a multiple of the batch size %d", o.items, n)}
		}
	}
	dir, err := os.MkdirTemp("", "ddiff-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	photos, err := copies(o, filepath.Join(dir, "photos"))
	if err != nil {
		return usageError{fmt.Errorf("--images: %w", err)}
	}
	fmt.Fprintf(stdout, "%-18s %5s %14s %14s %7s\n", "task", "batch", "network ms", "campaign ms", "share")
	var figures []figure
	for _, n := range o.batches {
		for _, task := range o.tasks {
			f, err := o.measure(ctx, filepath.Join(dir, fmt.Sprintf("%s-%d", task, n)), photos, task, n, stderr)
			if err != nil {
				return fmt.Errorf("bench %s with batch %d: %w", task, n, err)
			}
			fmt.Fprintf(stdout, "%-18s %5d %14.2f %14.2f %7.3f\n", f.task, f.batch, f.bare, f.whole, f.share())
			figures = append(figures, f)
		}
	}
	line := ""
	for _, n := range o.batches {
		line += fmt.Sprintf("share_b%d=%.2f ", n, lowest(figures, n, true))
	}
	ours := figures[0]
	versus, tuned := "skipped", ""
	if o.torch != "" {
		plain, last, err := o.versusTorch(ctx, dir, photos, ours.task, stdout, stderr)
		if err != nil {
			return err
		}
		versus, tuned = fmt.Sprintf("%.2f", plain), fmt.Sprintf(" vs_torch_channels_last=%.2f", last)
	}
	line += fmt.Sprintf("vs_torch=%s ms_per_step=%.1f", versus, ours.whole)
	for _, n := range o.batches {
		if s := lowest(figures, n, false); s < 1e9 {
			line += fmt.Sprintf(" heavy_b%d=%.2f", n, s)
		}
	}
	fmt.Fprintln(stdout, line+tuned)
	return nil
}

// lowest is the smallest share among the light or the other tasks.
func lowest(figures []figure, batch int, light bool) float64 {
	s := 1e9
	for _, f := range figures {
		if f.batch == batch && slices.Contains(lightTasks, f.task) == light {
			s = min(s, f.share())
		}
	}
	return s
}

// copies puts as many photographs as the largest campaign needs into a directory: the given
// ones, mirrored and turned into different images as often as it takes.
func copies(o benchOptions, dir string) ([]string, error) {
	entries, err := filepath.Glob(filepath.Join(o.images, "*.png"))
	if err != nil || len(entries) == 0 {
		return nil, fmt.Errorf("%s holds no PNG", o.images)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	var out []string
	for i := range o.items {
		data, err := os.ReadFile(entries[i%len(entries)])
		if err != nil {
			return nil, err
		}
		img, err := raster.Decode(data, raster.Limits{})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", entries[i%len(entries)], err)
		}
		img.Pix[0] = float32(i)/128 - 1 // another image, so that nothing is found done
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

// measure runs one campaign, and the bare network before and after it.
func (o benchOptions) measure(ctx context.Context, out string, photos []string, task string, n int, stderr io.Writer) (figure, error) {
	spec := manifest.Default()
	spec.Name, spec.Output, spec.Batch, spec.Steps = "bench", out, n, o.steps
	spec.Dataset = manifest.Dataset{Path: filepath.Dir(photos[0]), Size: o.size, Fit: manifest.FitResize}
	spec.Tasks = []manifest.TaskSpec{{Name: task}}
	if err := spec.Validate(shard.Vocabulary()); err != nil {
		return figure{}, usageError{err}
	}
	f := figure{task: task, batch: n}
	err := withEmbedded(ctx, spec, o.run, io.Discard, stderr, func(e embedded) error {
		net, err := newBareNetwork(e.engine.Runtime(), e.prior, n, o.size)
		if err != nil {
			return err
		}
		defer net.close()
		// The first calls of a session are slower; they belong to neither side.
		if _, err := net.run(ctx, 3); err != nil {
			return err
		}
		before, err := net.run(ctx, o.steps/3)
		if err != nil {
			return err
		}
		c, w, err := e.parts()
		if err != nil {
			return err
		}
		if err := c.Shard(ctx); err != nil {
			return err
		}
		begin := time.Now()
		if err := e.work(ctx, c, w); err != nil {
			return err
		}
		f.whole = time.Since(begin).Seconds() * 1000 / float64(o.steps*o.items/n)
		if got := c.Counts(); got.Done != o.items {
			return fmt.Errorf("%d of %d items done", got.Done, o.items)
		}
		after, err := net.run(ctx, o.steps/3)
		f.bare = (before + after) / 2
		return err
	})
	return f, err
}

// versusTorch runs the same solver in PyTorch in turn with one more campaign, and gives the
// lowest ratio, over the batch sizes, of the times per step: above 1, PyTorch is slower. It
// does so with the weights in PyTorch's default layout and in the channels-last layout, which
// is faster on some CPUs.
func (o benchOptions) versusTorch(ctx context.Context, dir string, photos []string, task string, stdout, stderr io.Writer) (plain, last float64, err error) {
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
	plain, last = 1e9, 1e9
	for _, n := range o.batches {
		// A machine's speed drifts: the two take turns, and the middle one of the ratios of
		// neighbours counts.
		var plains, lasts []float64
		for round := range torchRounds {
			ours, err := o.measure(ctx, filepath.Join(dir, fmt.Sprintf("torch-%d-%d", n, round)), photos, task, n, stderr)
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
			fmt.Fprintf(stdout, "%-18s %5d %14s %14.2f  PyTorch %.2f ms, channels-last %.2f ms\n", task, n, "", ours.whole, a, b)
			plains, lasts = append(plains, a/ours.whole), append(lasts, b/ours.whole)
		}
		slices.Sort(plains)
		slices.Sort(lasts)
		plain, last = min(plain, plains[len(plains)/2]), min(last, lasts[len(lasts)/2])
	}
	return plain, last, nil
}

// torchRounds is the number of turns of PyTorch and ddiff, an odd number.
const torchRounds = 3

// torchStep is PyTorch's milliseconds per step of a batch.
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
		return 0, errors.Join(fmt.Errorf("PyTorch printed %q", raw), err)
	}
	return r.MS, nil
}

// bareNetwork is the score network alone, compiled for one batch size.
type bareNetwork struct {
	session *onnx.Session
	in, out []*onnx.Tensor
}

func newBareNetwork(rt *onnx.Runtime, p *prior.Prior, n, size int) (*bareNetwork, error) {
	g := onnx.NewGraph(p.Opset())
	x := g.Input("x", onnx.Float, n, p.Card.Channels, size, size)
	t := g.Input("t", onnx.Int64, 1)
	y, err := p.Predict(g, x, t)
	if err != nil {
		return nil, err
	}
	g.Output("y", y)
	model, err := g.Marshal("network")
	if err != nil {
		return nil, err
	}
	b := &bareNetwork{}
	if b.in, err = onnx.NewTensors(x, t); err != nil {
		return nil, err
	}
	if b.out, err = onnx.NewTensors(y); err != nil {
		return nil, err
	}
	b.in[1].I64[0] = 300
	b.session, err = rt.NewSession(model, []string{"x", "t"}, []string{"y"})
	return b, err
}

// run gives the milliseconds per call.
func (b *bareNetwork) run(ctx context.Context, calls int) (float64, error) {
	begin := time.Now()
	for range calls {
		if err := b.session.Run(ctx, b.in, b.out); err != nil {
			return 0, err
		}
	}
	return time.Since(begin).Seconds() * 1000 / float64(calls), nil
}

func (b *bareNetwork) close() {
	b.session.Close()
	onnx.CloseTensors(b.in)
	onnx.CloseTensors(b.out)
}

// Package bench has the command ddiff bench, which compares a campaign's speed with the score network alone and with PyTorch.
//
// It times whole campaigns in this process with package embedded, and PyTorch in a process of its own.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ddiff/internal/cli"
	"ddiff/internal/cli/campaign"
	"ddiff/manifest"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// benchOptions are the flags of bench.
type benchOptions struct {
	run     campaign.Options // its spec has the precision
	images  string
	tasks   []string
	batches []int
	size    int
	steps   int
	items   int
	rounds  int
	limit   time.Duration
	torch   string
	compile time.Duration
	tools   string
}

// lightTasks are the tasks whose operators cost little next to the network.
var lightTasks = []string{operator.SuperResolution, operator.InpaintBox, operator.InpaintRandom, operator.GaussianDeblur, operator.HDR}

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	o := benchOptions{run: campaign.Options{Process: cli.ProcessFlags{LogLevel: "off"}, Quiet: true}}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Compare a campaign's speed with the score network alone and with PyTorch",
		Long: "Run a campaign for each task and batch size, including queue, storage, metrics and pictures. Before and\n" +
			"after each campaign, time the score network alone in the same process. Print milliseconds per step of a\n" +
			"batch and the network's share of the campaign's wall time: medians over the rounds, with the lowest and\n" +
			"highest value. With --torch, time the solver of the first task alone, and the same solver and weights in\n" +
			"PyTorch: memory layouts, bfloat16 if the processor has it, compiled. vs_torch is the time of PyTorch's\n" +
			"fastest variant divided by ddiff's; vs_torch_float32 is the same ratio with float32 on both sides.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runBench(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.images, "images", "examples/images", "directory of photographs (PNG)")
	f.StringSliceVar(&o.tasks, "task", nil, "`tasks` to run, separated by commas (default: the eight of the paper)")
	f.IntSliceVar(&o.batches, "batch", []int{1, 4}, "batch `sizes`, separated by commas")
	f.IntVar(&o.size, "size", 256, "working size in pixels")
	f.IntVar(&o.steps, "steps", 60, "solver steps per image")
	f.IntVar(&o.items, "items", 8, "images per campaign; must be a multiple of each batch size")
	f.IntVar(&o.rounds, "rounds", 3, "measurements of each setting")
	f.DurationVar(&o.limit, "time", 0, "time within which all rounds but the first must end, judged by the longest one, without compilations (0: no limit)")
	f.StringVar(&o.torch, "torch", "", "Python interpreter with PyTorch and onnx (default: skip PyTorch)")
	f.DurationVar(&o.compile, "torch-compile", 40*time.Second, "time after which no compilation of PyTorch begins (0: none)")
	f.StringVar(&o.tools, "tools", "tools", "directory that holds ddiff_torch")
	o.run.AddDevice(f, onnxruntime.ProviderAuto)
	o.run.AddBuild(f)
	f.StringVar((*string)(&o.run.Spec.Precision), "precision", string(manifest.PrecisionAuto),
		"arithmetic of the score network: "+cli.Words(append(parameter.Precisions(), manifest.PrecisionAuto)))
	return cmd
}

func runBench(ctx context.Context, o benchOptions, stdout, stderr io.Writer) (err error) {
	if len(o.tasks) == 0 {
		o.tasks = operator.Paper().Names()
	}
	for _, n := range o.batches {
		if n < 1 || o.items%n != 0 {
			return cli.Usage(fmt.Errorf("--items: %d is not a multiple of the batch size %d; choose a multiple", o.items, n))
		}
	}
	if o.limit < 0 {
		return cli.Usage(fmt.Errorf("--time: %v is negative; 0 is no limit", o.limit))
	}
	if len(o.batches) == 0 || o.rounds < 1 {
		return cli.Usage(fmt.Errorf("--batch and --rounds: %d sizes and %d rounds; need at least one of each", len(o.batches), o.rounds))
	}
	dir, err := os.MkdirTemp("", "ddiff-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	photos, err := writePhotographs(o, filepath.Join(dir, "photos"))
	if err != nil {
		return cli.Usage(fmt.Errorf("--images: %w", err))
	}
	var torch *torchProcess
	if o.torch != "" {
		if torch, err = o.startTorch(ctx, dir, stderr); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, torch.close()) }()
	}
	r, failure := o.measure(ctx, dir, photos, torch, stderr)
	if failure != nil && !r.complete() {
		return failure
	}
	r.printCampaigns(stdout)
	if torch != nil {
		r.printTorch(o.tasks[0], torch, stdout)
	}
	line, err := o.summary(r, torch != nil)
	if err != nil {
		return errors.Join(failure, err)
	}
	fmt.Fprintln(stdout, line)
	return failure
}

// printCampaigns prints one line per task and batch size.
func (r benchResults) printCampaigns(w io.Writer) {
	fmt.Fprintf(w, "%-18s %5s %12s %12s %7s %14s\n", "task", "batch", "network ms", "campaign ms", "share", "spread")
	for _, s := range r.settings {
		network, share := r.of(s, func(t timing) float64 { return t.network }), r.of(s, timing.share)
		fmt.Fprintf(w, "%-18s %5d %12.2f %12.2f %7.3f %6.3f..%.3f\n", s.name, s.batch, network.median,
			r.of(s, timing.ofCampaign).median, share.median, share.low, share.high)
	}
}

// printTorch prints one line per batch size with the solver of ddiff, one per variant and batch size, and the variants that did not
// run.
func (r benchResults) printTorch(task string, torch *torchProcess, w io.Writer) {
	fmt.Fprintf(w, "PyTorch %s, %s\n%-36s %5s %12s %7s %12s\n", torch.hello.Torch, task, "variant", "batch", "step ms", "ratio", "spread")
	for _, s := range r.settings {
		if s.name != task {
			continue
		}
		line := func(precision onnxruntime.Precision, value func(t timing) float64) {
			fmt.Fprintf(w, "%-36s %5d %12.2f\n", "ddiff "+string(precision), s.batch, r.of(s, value).median)
		}
		precision := r.timings[s][0].precision
		line(precision, func(t timing) float64 { return t.solver })
		if precision != onnxruntime.FP32 {
			line(onnxruntime.FP32, func(t timing) float64 { return t.float32 })
		}
	}
	for _, v := range r.variants {
		ratio := r.ratios(v, task, false)
		fmt.Fprintf(w, "%-36s %5d %12.2f %7.2f %6.2f..%.2f\n", v.name, v.batch, spreadOf(r.torch[v]).median, ratio.median, ratio.low, ratio.high)
	}
	for _, reason := range torch.skipped {
		fmt.Fprintln(w, "skipped:", reason)
	}
}

// summary returns the last line.
func (o benchOptions) summary(r benchResults, torch bool) (string, error) {
	line := ""
	for i, name := range []string{"share_light", "share_heavy"} {
		value := "skipped"
		if share, ok := r.lowestShare(i == 0); ok {
			value = fmt.Sprintf("%.2f", share)
		}
		line += name + "=" + value + " "
	}
	for i, name := range []string{"vs_torch", "vs_torch_float32"} {
		value := "skipped"
		if torch {
			ratio, err := r.versus(o.tasks[0], i == 1)
			if err != nil {
				return "", err
			}
			value = fmt.Sprintf("%.2f", ratio)
		}
		line += name + "=" + value + " "
	}
	made := r.timings[r.settings[0]]
	return line + fmt.Sprintf("provider=%s precision=%s ms_per_step=%.1f rounds=%d of=%d", made[0].provider, made[0].precision,
		r.of(r.settings[0], timing.ofCampaign).median, len(made), o.rounds), nil
}

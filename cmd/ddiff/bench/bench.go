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

	"ddiff/coordinator/shard"
	"ddiff/internal/cli"
	"ddiff/internal/cli/campaign"
	"ddiff/internal/cli/embedded"
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
	tools   string
}

// photographs is the folder of the measured photographs below the temporary one.
const photographs = "photographs"

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
			return o.bench(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
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
	f.DurationVar(&o.limit, "time", 0, "time within which all rounds but the first must end, judged by the longest one (0: no limit)")
	f.StringVar(&o.torch, "torch", "", "Python interpreter with PyTorch and onnx (default: skip PyTorch)")
	f.StringVar(&o.tools, "tools", "tools", "directory that holds ddiff_torch")
	o.run.AddDevice(f, onnxruntime.ProviderAuto)
	o.run.AddBuild(f)
	f.StringVar((*string)(&o.run.Spec.Precision), "precision", string(manifest.PrecisionAuto),
		"arithmetic of the score network: "+cli.Words(append(parameter.Precisions(), manifest.PrecisionAuto)))
	return cmd
}

// bench measures and prints the results. After an error they are those of the complete rounds.
func (o benchOptions) bench(ctx context.Context, stdout, stderr io.Writer) (err error) {
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
	if err := o.writePhotographs(filepath.Join(dir, photographs)); err != nil {
		return cli.Usage(fmt.Errorf("--images: %w", err))
	}
	spec := o.spec(o.tasks, o.batches[0], dir, 0)
	if err := spec.Validate(shard.Vocabulary()); err != nil {
		return cli.Usage(err)
	}
	r := results{task: o.tasks[0]}
	for _, n := range o.batches {
		for _, task := range o.tasks {
			r.settings = append(r.settings, setting{task, n})
		}
	}
	var torch *torchProcess
	if o.torch != "" {
		if torch, err = o.startTorch(ctx, dir, stderr); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, torch.close()) }()
		if r.variants, err = torch.prepare(o.batches, r.task); err != nil {
			return err
		}
		if r.torch = torch.hello.Torch; len(r.variants) == 0 {
			return errors.New("run PyTorch: no variant ran")
		}
	}
	failure := embedded.WithMachine(ctx, spec, o.run, io.Discard, stderr, func(m embedded.Machine) error {
		start, longest := time.Now(), time.Duration(0)
		for len(r.rounds) < o.rounds {
			begin := time.Now()
			if o.limit > 0 && len(r.rounds) > 0 && time.Since(start)+longest > o.limit {
				break
			}
			measured, err := o.round(ctx, m, spec, dir, &r, torch)
			if err != nil {
				return err
			}
			r.rounds, longest = append(r.rounds, measured), max(longest, time.Since(begin))
		}
		return nil
	})
	if len(r.rounds) > 0 {
		r.print(stdout)
		if torch != nil {
			for _, reason := range torch.skipped {
				fmt.Fprintln(stdout, "skipped:", reason)
			}
		}
		fmt.Fprintln(stdout, r.summary(o.rounds))
	}
	return failure
}

// round measures every setting once. After the first task of a batch size it measures the variants of PyTorch, so that both sides see
// the same load of the machine.
func (o benchOptions) round(ctx context.Context, m embedded.Machine, all *manifest.Spec, dir string, r *results, torch *torchProcess) (round, error) {
	out := round{timings: map[setting]timing{}, torch: map[setting]float64{}}
	for i, s := range r.settings {
		compared := s.name == r.task && torch != nil
		spec := o.spec([]string{s.name}, s.batch, dir, len(r.rounds)*len(r.settings)+i)
		spec.Precision = onnxruntime.FP32
		if all.Precision != "" {
			spec.Precision = all.PrecisionOf(s.name, all.Precision)
		}
		var err error
		if out.timings[s], err = o.timeCampaign(ctx, m, spec, compared); err != nil {
			return out, fmt.Errorf("bench %s with batch %d: %w", s.name, s.batch, err)
		}
		if !compared {
			continue
		}
		for _, v := range r.variants {
			if v.batch != s.batch {
				continue
			}
			if out.torch[v], err = torch.step(torchRequest{v.name, s.name, s.batch, max(o.steps/4, 3)}); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

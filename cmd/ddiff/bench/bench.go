// Package bench has the command ddiff bench, which compares a campaign's speed with the score network alone.
//
// It times whole campaigns in this process with package embedded. tools/ddiff_torch/compare.py runs it and PyTorch in turn.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"ddiff/internal/cli"
	"ddiff/internal/cli/campaign"
	"ddiff/internal/cli/embedded"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/manifest"
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
	solver  bool
	forms   bool
}

// photographs is the folder of the measured photographs below the temporary one.
const photographs = "photographs"

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	o := benchOptions{run: campaign.Options{Process: cli.ProcessFlags{LogLevel: "off"}, Quiet: true}}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Compare a campaign's speed with the score network alone",
		Long: "Run a campaign for each task and batch size, including queue, storage, metrics and pictures. Before and\n" +
			"after each campaign, time the score network alone in the same process. Print milliseconds per step of a\n" +
			"batch and the network's share of the campaign's wall time: medians over the rounds, with the lowest and\n" +
			"highest value. With --solver, also time the solver of the first task alone, and in float32; make bench\n" +
			"compares them with PyTorch.",
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
	f.BoolVar(&o.solver, "solver", false, "also time the solver of the first task alone")
	f.BoolVar(&o.forms, "forms", false, "print the forms of the network with their times (always on CUDA)")
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
		if n < 1 || o.items < 1 || o.items%n != 0 {
			return cli.Usage(fmt.Errorf("--items: %d is not a multiple of the batch size %d; choose a multiple", o.items, n))
		}
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
	if err := spec.Validate(manifest.Catalogue{}); err != nil {
		return cli.Usage(err)
	}
	var r results
	for _, n := range o.batches {
		for _, task := range o.tasks {
			r.settings = append(r.settings, setting{task, n})
		}
	}
	failure := embedded.WithMachine(ctx, spec, o.run, io.Discard, stderr, func(m embedded.Machine) error {
		for len(r.rounds) < o.rounds {
			measured, err := o.round(ctx, m, spec, dir, r)
			if err != nil {
				return err
			}
			r.rounds = append(r.rounds, measured)
		}
		return o.printForms(ctx, m, r, stdout)
	})
	if len(r.rounds) > 0 {
		r.print(stdout)
		fmt.Fprintln(stdout, r.summary(o.rounds))
	}
	return failure
}

// round measures every setting once.
func (o benchOptions) round(ctx context.Context, m embedded.Machine, all *manifest.Spec, dir string, r results) (round, error) {
	out := round{}
	for i, s := range r.settings {
		spec := o.spec([]string{s.task}, s.batch, dir, len(r.rounds)*len(r.settings)+i)
		spec.Precision = onnxruntime.FP32
		if all.Precision != "" {
			spec.Precision = all.PrecisionOf(s.task)
		}
		var err error
		if out[s], err = o.timeCampaign(ctx, m, spec, o.solver && s.task == o.tasks[0]); err != nil {
			return out, fmt.Errorf("bench %s with batch %d: %w", s.task, s.batch, err)
		}
	}
	return out, nil
}

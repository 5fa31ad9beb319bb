// Package tune has the command ddiff tune, which chooses settings on some images and reports them on others.
//
// Package internal/tune divides the images and races the settings. This package plans the races of a campaign, solves
// them with package embedded, and writes and prints the outcome.
package tune

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ddiff/internal/cli"
	"ddiff/internal/cli/campaign"
	"ddiff/internal/cli/embedded"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/sweep"
	"ddiff/internal/restore/prior"
	"ddiff/internal/tune"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// tuneOptions are the flags of tune.
type tuneOptions struct {
	campaign.Options
	objective string
	split     manifest.Split // values of the flags
}

// NewCommand returns the command for the methods and operators of a catalogue.
func NewCommand(c manifest.Catalogue) *cobra.Command {
	o := tuneOptions{Options: campaign.Options{ComputeOptions: cli.ComputeOptions{Catalogue: c}}}
	cmd := &cobra.Command{
		Use:   "tune [CAMPAIGN.yaml | IMAGES...]",
		Short: "Choose settings on some images and report them on others",
		Long: "Divide the images into a tuning side and a test side, choose the best settings of the campaign's lists on\n" +
			"the tuning side for each problem (task, parameters, noise level, size) and method, and report the chosen\n" +
			"settings on the test side. A race stops settings early that are clearly worse.\n\n" +
			"The arguments are those of ddiff run; --set and the lists of a campaign file are the settings to compare.\n" +
			"The output gets tuned.yaml, a campaign with the chosen settings, tuning.json, and the report of the test\n" +
			"images. Rerun the same command after an interruption; results are not computed again.",
		Example: "  ddiff tune photos --task hdr --set gamma0=2,4,8 --set b=0.5,1 \\\n      --steps 50 --out out/hdr\n" +
			"  ddiff tune campaign.yaml --folds 2\n" +
			"  ddiff tune campaign.yaml --tune-images 'night/*' --objective ssim --dry-run",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), cmd.Flags(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	o.AddMain(f)
	f.StringVar(&o.objective, "objective", "", "`figure` that decides: "+cli.Words(tune.Objectives())+" (default psnr)")
	f.Float64Var(&o.split.Share, "tune", 0, "expected `share` of the images on the tuning side (default 0.5)")
	f.StringArrayVar(&o.split.Tune, "tune-images", nil, "`pattern` of the names of tuning images, as in 'night/*'; repeatable")
	f.StringArrayVar(&o.split.Test, "test-images", nil, "`pattern` of the names of test images; repeatable")
	f.IntVar(&o.split.Folds, "folds", 0, "`number` of parts, each of which is the test side of settings chosen on the others")
	f.Uint64Var(&o.split.Seed, "split-seed", 0, "`seed` of the division by --tune and --folds")
	f.BoolVar(&o.DryRun, "dry-run", false, "print the sides and the settings; write nothing")
	f.BoolVar(&o.JSON, "json", false, "print one JSON object with the comparison and the figures")
	f.BoolVarP(&o.Quiet, "quiet", "q", false, "print no progress, only the table and the counts")
	o.AddSettings(f)
	o.Measurements.AddFiles(f)
	o.AddParts(f)
	return cmd
}

// run reads the campaign, plans, races and tests.
func (o tuneOptions) run(ctx context.Context, flags *pflag.FlagSet, args []string, stdout, stderr io.Writer) error {
	objective, err := tune.ParseObjective(o.objective)
	if err != nil {
		return cli.Usage(fmt.Errorf("tune: --%w", err))
	}
	spec, skipped, err := o.Read(flags, args)
	if err != nil {
		return err
	}
	if err := o.setSplit(flags, spec); err != nil {
		return err
	}
	rule, err := selection.Parse(spec.Select)
	if err == nil && rule.Oracle() {
		err = fmt.Errorf("select %s: it looks at the truth, so that its figures rank nothing; use first, mean, closest_to_noise or min_misfit", rule)
	}
	if err != nil {
		return cli.Usage(fmt.Errorf("tune: %w", err))
	}
	if !o.JSON {
		fmt.Fprint(stderr, skipped.Report(o.Quiet))
	}
	if note := o.Catalogue.EqualRuns(spec); note != "" {
		fmt.Fprintln(stderr, cli.Printable("warning: "+note))
	}
	if o.DryRun {
		return o.plan(ctx, spec, stdout, stderr)
	}
	inner := o.Options
	inner.Quiet = o.Quiet || o.JSON
	inner.JSON = false
	return embedded.WithMachine(ctx, spec, inner, stdout, stderr, func(m embedded.Machine) error {
		t := &tuning{machine: m, spec: spec, objective: objective, rule: rule, leftOut: skipped, results: map[solution][]item.Result{}}
		if !inner.Quiet {
			t.stderr = stderr
		}
		var err error
		if t.tuningPlan, err = o.contests(ctx, spec, &m.Prior.Description, m.Sources, stderr); err != nil {
			return err
		}
		if err := t.race(ctx); err != nil {
			return err
		}
		out, err := t.finish(ctx)
		if err != nil {
			return err
		}
		return errors.Join(out.print(stdout, o.JSON), out.failures())
	})
}

// setSplit sets the split of a campaign from the flags. A flag that divides replaces the division of the file.
func (o tuneOptions) setSplit(flags *pflag.FlagSet, spec *manifest.Spec) error {
	s := manifest.Split{}
	if spec.Split != nil {
		s = *spec.Split
	}
	s.Run, s.Fold = "", 0
	if slices.ContainsFunc([]string{"tune", "tune-images", "test-images", "folds"}, flags.Changed) {
		s.Share, s.Tune, s.Test, s.Folds = o.split.Share, o.split.Tune, o.split.Test, o.split.Folds
	}
	if flags.Changed("tune") && s.Share == 0 {
		s.Share = -1 // out of range
	}
	if flags.Changed("split-seed") {
		s.Seed = o.split.Seed
	}
	if len(s.Tune)+len(s.Test) == 0 && s.Share == 0 && s.Folds == 0 {
		s.Share = tune.DefaultShare
	}
	if field, err := s.Check(); err != nil {
		flag := map[string]string{"tune": "--tune", "test": "--test-images", "folds": "--folds"}[field]
		return cli.Usage(fmt.Errorf("tune: %s: %w", flag, err))
	}
	spec.Split = &s
	return nil
}

// plan prints what a tuning would compare.
func (o tuneOptions) plan(ctx context.Context, spec *manifest.Spec, stdout, stderr io.Writer) error {
	return o.WithPlan(spec, stderr, func(p *prior.Prior, sources cli.Datasets) error {
		plan, err := o.contests(ctx, spec, &p.Description, sources, stderr)
		if err != nil {
			return err
		}
		return (&tuning{tuningPlan: plan, spec: spec}).print(stdout, o.JSON)
	})
}

// contests plans a tuning, and names the rows that cannot be restored.
func (o tuneOptions) contests(ctx context.Context, spec *manifest.Spec, p *prior.Description, sources cli.Datasets, stderr io.Writer) (*tuningPlan, error) {
	plan, err := planTuning(ctx, spec, o.Catalogue, p, sources)
	if err != nil {
		return nil, err
	}
	for _, r := range plan.failed {
		fmt.Fprintln(stderr, cli.StyleOf(stderr).Red("failed:"), cli.ItemLine(r))
	}
	return plan, nil
}

// unreadable has the names of the rows with entries that cannot be restored.
func (t *tuningPlan) unreadable() []string {
	var out []string
	for _, r := range t.failed {
		if !slices.Contains(out, r.Item.Name) {
			out = append(out, r.Item.Name)
		}
	}
	return out
}

// finish solves the test images with the chosen settings, and writes the files of the tuning.
func (t *tuning) finish(ctx context.Context) (*tuneOutcome, error) {
	out := &tuneOutcome{Record: t.record(), Unreadable: t.unreadable(), Out: t.spec.Output}
	for _, f := range out.Folds {
		for _, race := range f.Races {
			for _, cell := range race.Cells {
				if cell.Round > 0 {
					out.Stopped++
				}
				out.NotRun += cell.NotRun
			}
		}
	}
	key, data, err := out.Encode()
	if err != nil {
		return nil, err
	}
	if err := t.machine.Store.Put(ctx, key, data); err != nil { // before the report, which reads it
		return nil, fmt.Errorf("write %s: %w", key, err)
	}
	out.Schema, out.Key = 1, key
	if err := t.test(ctx); err != nil {
		return nil, err
	}
	if out.Tests, out.TestEvaluations, err = t.tests(); err != nil {
		return nil, err
	}
	keys, files, err := t.campaigns()
	if err != nil {
		return nil, err
	}
	out.Campaigns = keys
	if data, err = json.MarshalIndent(out, "", "  "); err != nil {
		return nil, fmt.Errorf("encode %s: %w", cli.KeyTuning, err)
	}
	keys, files = append(slices.Clone(keys), cli.KeyTuning), append(files, append(data, '\n'))
	for i, key := range keys {
		if err := t.machine.Store.Put(ctx, key, files[i]); err != nil {
			return nil, fmt.Errorf("write %s: %w", key, err)
		}
	}
	return out, nil
}

// test solves the test images with the chosen settings, and writes the report of the output.
func (t *tuning) test(ctx context.Context) error {
	want := map[solution]bool{}
	for _, c := range t.contests {
		for k, f := range t.folds {
			settings, ok := c.races[k].Winner()
			if !ok {
				continue
			}
			for _, img := range c.among(f.Test) {
				want[solution{c, settings, img.SHA256}] = true
			}
		}
	}
	if len(want) == 0 {
		return fmt.Errorf("%w: no setting restored a tuning image", cli.ErrIncomplete)
	}
	if t.stderr != nil {
		fmt.Fprintf(t.stderr, "test: %d problems and methods\n", len(t.contests))
	}
	return t.solve(ctx, want, true)
}

// failures returns an error if test images have no result.
func (o *tuneOutcome) failures() error {
	failed := 0
	for _, one := range o.Tests {
		failed += len(one.Failed)
	}
	if failed+len(o.Unreadable) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d results on test images are missing, %d rows cannot be read", cli.ErrIncomplete, failed, len(o.Unreadable))
}

func problemCell(p sweep.Problem) string {
	return strings.TrimPrefix(strings.TrimPrefix(problemText(p), p.Task), " ")
}

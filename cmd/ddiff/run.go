package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/restore/onnx/onnxruntime"
)

// runOptions are the flags of run.
type runOptions struct {
	images string
	// measurement is a dataset of measurements in place of images.
	measurement  string
	measurements measurementFlags

	tasks   []string
	own     []string // operator files
	methods []string
	params  []string      // NAME=VALUE or TASK.NAME=VALUE
	solver  []string      // NAME=VALUE
	sweeps  []string      // NAME=VALUE[,VALUE...]
	spec    manifest.Spec // values of the flags that override the campaign
	overlap int           // of tiles
	photons float64
	sources sourceFlags
	stages  stageFlags
	dryRun  bool
	json    bool
	quiet   bool
	// simulate is the mean time for which each item is held instead of computed; 0 computes.
	simulate time.Duration

	computeOptions
	process processFlags
}

func newRunCommand(c shard.Catalogue) *cobra.Command {
	o := runOptions{computeOptions: computeOptions{catalogue: c}}
	cmd := &cobra.Command{
		Use:   "run [CAMPAIGN.yaml | IMAGES...]",
		Short: "Run a campaign on this machine",
		Long: "Run a campaign in this process: coordinator, JetStream queue and one worker. Rerun the same command\n" +
			"after an interruption to resume; finished items are not computed again.\n\n" +
			"The arguments are one campaign file (.yaml, .yml) or any number of images, directories, quoted globs,\n" +
			"lists (.csv, .jsonl, .txt, .parquet), archives (.tar), s3:// and https:// addresses. Images need --task or\n" +
			"--operator.\n" +
			"Flags override the campaign file. Results are under items/ID in --out, links with readable names under\n" +
			"restored/, and the report in index.html.",
		Example: "  ddiff run photo.png --task super_resolution\n" +
			"  ddiff run photos/*.jpg --task all --out out/photos\n" +
			"  ddiff run photos --task gaussian_deblur --param std=5 --solver gamma0=20 --dry-run\n" +
			"  ddiff run examples/demo.yaml --limit 5",
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, skipped, err := o.campaign(cmd.Flags(), args)
			if err != nil {
				return err
			}
			stdout, stderr := cmd.OutOrStdout(), cmd.ErrOrStderr()
			if skipped > 0 && !o.json && !o.quiet {
				fmt.Fprintf(stderr, "skipped %d non-image arguments\n", skipped)
			}
			if note := defaultsNote(spec); note != "" && !o.json && !o.quiet {
				fmt.Fprintln(stderr, note)
			}
			if o.dryRun {
				return dryRun(cmd.Context(), spec, o, stdout, stderr)
			}
			err = runEmbedded(cmd.Context(), spec, o, stdout, stderr)
			if code := exitCode(err); o.simulate == 0 && slices.Contains([]int{exitDone, exitIncomplete, exitInterrupted}, code) {
				nameResults(cmd.Context(), spec.Output, stderr)
			}
			return err
		},
	}
	f := cmd.Flags()
	o.addMain(f)
	f.BoolVar(&o.dryRun, "dry-run", false, "print the items to run and those already done; write nothing")
	f.BoolVar(&o.json, "json", false, "print one JSON object per finished item, and one with the counts")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print no progress, only the table and the counts")
	o.addSettings(f)
	f.StringVar(&o.measurement, "measurement", "", "measurements to restore, as a single `path` or address: pictures or .npy files, in place of images")
	o.measurements.add(f)
	f.DurationVar(&o.simulate, "simulate", 0, "hold each item for about so long instead of computing")
	_ = f.MarkHidden("simulate") // the flag exists
	o.addParts(f)
	return cmd
}

// addMain adds the flags of a campaign that most people need.
func (o *runOptions) addMain(f *pflag.FlagSet) {
	f.StringSliceVar(&o.tasks, "task", nil, "`tasks`, separated by commas, or all (without inpaint, which needs a mask); those of the campaign file keep its settings; see: ddiff tasks")
	f.StringArrayVar(&o.own, "operator", nil, "ONNX `file` of an operator of your own, as a task named after the file; repeatable; see: ddiff operator check")
	f.StringVarP(&o.spec.Output, "out", "o", "", "`directory` for the results, or s3://bucket/prefix?endpoint=URL (default \"out\")")
	f.StringSliceVar(&o.methods, "method", nil, "`methods`, separated by commas; see: ddiff methods (default ddiff)")
	f.StringVar(&o.spec.Preset, "preset", "", "solver settings: "+strings.Join(o.catalogue.Methods.Presets(), ", ")+" (default \"natural\")")
	f.StringVar(&o.spec.Prior, "prior", "", "bundled, an ONNX file or the `folder` of a bundle (default \"bundled\")")
	f.IntVar(&o.spec.Steps, "steps", 0, "solver steps (default: the preset's)")
	f.IntVar(&o.spec.Dataset.Size, "size", 0, "working size in `pixels` (default 256)")
	f.IntVar(&o.spec.Dataset.Limit, "limit", 0, "read only the first `rows` of the dataset")
}

// addSettings adds the other flags that override a campaign.
func (o *runOptions) addSettings(f *pflag.FlagSet) {
	f.StringVar(&o.images, "images", "", "images, as a single `path` or address: in place of the arguments, or of the campaign file's dataset")
	f.StringArrayVar(&o.params, "param", nil, "operator parameter `NAME=VALUE`, or TASK.NAME=VALUE; repeatable")
	f.Var(&sigmaFlag{&o.spec.Sigma}, "sigma", "standard deviation of the measurement noise, or auto for stored measurements (default 0.05)")
	addPhotons(f, &o.photons)
	f.Uint64Var(&o.spec.Seed, "seed", 0, "`seed` of every random draw")
	f.IntVar(&o.spec.Runs, "runs", 0, "runs per item, each with other solver noise (default 1)")
	f.StringVar((*string)(&o.spec.Select), "select", "", "`rule` that selects the run to report: "+words(manifest.Selections())+" (default first)")
	f.StringArrayVar(&o.solver, "solver", nil, "solver parameter `NAME=VALUE` in place of the preset's; repeatable")
	f.StringArrayVar(&o.sweeps, "set", nil,
		"sweep over `NAME=VALUE[,VALUE]`: sigma, photons, steps, an operator or solver parameter; repeatable, all combinations run")
	f.StringVar((*string)(&o.spec.Dataset.Fit), "fit", "", "how images reach the working size: center_crop, resize or pad (default center_crop)")
	f.StringVar(&o.spec.Tile, "tile", "", "side in `pixels` of the tiles in which the network predicts on larger images: auto, off, or a number (default off)")
	f.IntVar(&o.overlap, "overlap", 0, "least number of `pixels` that neighbouring tiles share (default a quarter of the tile)")
	f.IntVar(&o.spec.Batch, "batch", 0, "images per solver call (0: automatic)")
	addCampaignPrecision(f, &o.spec.Precision)
}

// addPhotons adds the flag for the noise of photons.
func addPhotons(f *pflag.FlagSet, photons *float64) {
	f.Float64Var(photons, "photons", 0, "mean `number` of photons of a white pixel, whose counts are noise beside sigma (default: no such noise)")
}

// addParts adds the flags of the parts of a run.
func (o *runOptions) addParts(f *pflag.FlagSet) {
	o.addDevice(f, onnxruntime.ProviderAuto)
	o.addBuild(f)
	o.sources.add(f)
	o.stages.add(f)
	o.process.add(f, "off")
}

// campaign reads the campaign file, or makes a campaign for images, and lets the flags override it. Skipped counts the
// arguments that are no images. The catalogue of o gets the campaign's operator files.
func (o *runOptions) campaign(flags *pflag.FlagSet, args []string) (spec *manifest.Spec, skipped int, err error) {
	if len(args) == 1 && isCampaign(args[0]) {
		spec, err = o.loadCampaign(args[0])
	} else {
		spec, skipped, err = o.imageCampaign(args)
	}
	if err != nil {
		return nil, 0, usageError{err}
	}
	swept := !flags.Changed("operator") && len(distinctTasks(spec)) == len(spec.Tasks)
	if err := o.override(flags, spec); err != nil {
		if exitCode(err) == exitPrior {
			return nil, 0, err
		}
		return nil, 0, usageError{err}
	}
	err = spec.Validate(o.catalogue.Vocabulary())
	if swept && err != nil { // a flag in place of a list makes cells of the file's sweep equal
		tasks := spec.Tasks
		if spec.Tasks = distinctTasks(spec); len(spec.Tasks) < len(tasks) && spec.Validate(o.catalogue.Vocabulary()) == nil {
			return spec, skipped, nil
		}
		spec.Tasks = tasks
	}
	if err != nil {
		return nil, 0, usageError{err}
	}
	return spec, skipped, nil
}

// distinctTasks returns the tasks of a campaign without those that repeat another one with the same settings.
func distinctTasks(s *manifest.Spec) []manifest.TaskSpec {
	var out []manifest.TaskSpec
	seen := map[string]bool{}
	for _, t := range s.Tasks {
		key, err := json.Marshal(s.Effective(t))
		if err == nil && seen[string(key)] {
			continue
		}
		seen[string(key)] = true
		out = append(out, t)
	}
	return out
}

// override replaces fields of the campaign by the flags that are set.
func (o *runOptions) override(flags *pflag.FlagSet, s *manifest.Spec) error {
	own, err := operatorTasks(o.own)
	if err != nil {
		return err
	}
	if flags.Changed("task") {
		if err := s.ChooseTasks(taskSpecs(o.tasks, o.catalogue), "--task"); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		flag, field string
		set         func()
	}{
		{"out", "output", func() { s.Output = o.spec.Output }},
		{"preset", "preset", func() { s.Preset = o.spec.Preset }},
		{"prior", "prior", func() { s.Prior = o.spec.Prior }},
		{"steps", "steps", func() {
			s.Steps = o.spec.Steps
			for i := range s.Tasks {
				s.Tasks[i].Steps = 0
			}
		}},
		{"sigma", "sigma", func() {
			s.Sigma = o.spec.Sigma
			for i := range s.Tasks {
				s.Tasks[i].Sigma = nil
			}
		}},
		{"photons", "photons", func() {
			s.Photons = &o.photons
			for i := range s.Tasks {
				s.Tasks[i].Photons = nil
			}
		}},
		{"seed", "seed", func() { s.Seed = o.spec.Seed }},
		{"runs", "runs", func() {
			s.Runs = o.spec.Runs
			for i := range s.Tasks {
				s.Tasks[i].Runs = 0
			}
		}},
		{"select", "select", func() { s.Select = o.spec.Select }},
		{"batch", "batch", func() { s.Batch = o.spec.Batch }},
		{"precision", "precision", func() { s.Precision = precisionName(string(o.spec.Precision)) }},
		{"tile", "tile", func() { s.Tile = o.spec.Tile }},
		{"overlap", "overlap", func() { s.Overlap = &o.overlap }},
		{"size", "dataset.size", func() { s.Dataset.Size = o.spec.Dataset.Size }},
		{"limit", "dataset.limit", func() { s.Dataset.Limit = o.spec.Dataset.Limit }},
		{"fit", "dataset.fit", func() { s.Dataset.Fit = o.spec.Dataset.Fit }},
	} {
		if flags.Changed(f.flag) {
			f.set()
			s.Override(f.field, "--"+f.flag)
		}
	}
	if len(own) > 0 {
		if !flags.Changed("task") {
			leaveOutOperators(s, own)
		}
		for i, t := range own {
			s.Override(fmt.Sprintf("tasks[%d]", len(s.Tasks)), "--operator "+o.own[i])
			s.Tasks = append(s.Tasks, t)
		}
	}
	if o.catalogue, err = withOperators(o.catalogue, s); err != nil {
		return err
	}
	if flags.Changed("method") {
		s.Override("methods", "--method")
		if err := s.RestrictMethods(o.methods, o.catalogue.Vocabulary()); err != nil {
			return err
		}
	}
	if err := o.measurements.set(flags, s); err != nil {
		return err
	}
	if err := setParams(s, o.params, o.catalogue); err != nil {
		return err
	}
	if err := setSolver(s, o.solver); err != nil {
		return err
	}
	return setSweeps(s, o.sweeps, o.catalogue)
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/restore/onnx"
)

// runOptions are the flags of run.
type runOptions struct {
	images  string
	tasks   []string
	methods []string
	fit     string
	spec    manifest.Spec // the values of flags that override the campaign
	sources sourceFlags
	json    bool
	quiet   bool

	computeOptions
	process processFlags
}

func newRunCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [CAMPAIGN.yaml]",
		Short: "Run a campaign on this machine",
		Long: "Runs a campaign with everything in this process: coordinator, JetStream queue and one worker.\n" +
			"Results go to a directory. Interrupting it loses nothing: the same command goes on.\n\n" + exitCodes,
		Example: "  ddiff run examples/demo.yaml\n" +
			"  ddiff run --images ./photos --task super_resolution --out ./out",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, err := o.campaign(cmd.Flags(), args)
			if err != nil {
				return err
			}
			return runEmbedded(cmd.Context(), spec, o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	o.sources.add(f)
	f.StringVar(&o.images, "images", "", "directory, glob, list, archive or one image, here or at s3:// or https://, instead of a campaign file")
	f.StringSliceVar(&o.tasks, "task", nil, "tasks, see: ddiff tasks")
	f.StringSliceVar(&o.methods, "method", nil, "methods, see: ddiff tasks")
	f.StringVar(&o.spec.Output, "out", "", "directory for the results, or s3://bucket/prefix?endpoint=URL")
	f.StringVar(&o.spec.Preset, "preset", "", "solver settings: natural, ffhq, imagenet")
	f.StringVar(&o.spec.Prior, "prior", "", "bundled, or an ONNX file")
	f.IntVar(&o.spec.Steps, "steps", 0, "solver steps")
	f.Float64Var(&o.spec.Sigma, "sigma", 0, "standard deviation of the measurement noise")
	f.Uint64Var(&o.spec.Seed, "seed", 0, "seed of every random draw")
	f.IntVar(&o.spec.Runs, "runs", 0, "runs per item")
	f.IntVar(&o.spec.Batch, "batch", 0, "images per solver call (0: chosen)")
	f.IntVar(&o.spec.Dataset.Size, "size", 0, "working size in pixels")
	f.IntVar(&o.spec.Dataset.Limit, "limit", 0, "only the first rows of the dataset")
	f.StringVar(&o.fit, "fit", "", "size policy: center_crop, resize, pad")
	f.BoolVar(&o.json, "json", false, "print one JSON object per finished item, and one with the counts")
	f.BoolVar(&o.quiet, "quiet", false, "no progress, only the table and the counts")
	o.addDevice(f, onnx.ProviderAuto)
	o.addBuild(f)
	o.process.add(f, "off")
	return cmd
}

// campaign reads the campaign file or makes a campaign from the flags; flags override the
// file.
func (o runOptions) campaign(flags *pflag.FlagSet, args []string) (*manifest.Spec, error) {
	var spec *manifest.Spec
	switch {
	case len(args) == 1 && o.images != "":
		return nil, usageError{errors.New("give a campaign file or --images, not both")}
	case len(args) == 1:
		var err error
		if spec, err = manifest.Load(args[0]); err != nil {
			return nil, usageError{err}
		}
	case o.images != "":
		dir, err := os.Getwd()
		if err != nil {
			return nil, usageError{fmt.Errorf("--images: %w", err)}
		}
		spec = manifest.Default()
		spec.Dataset.Path = manifest.ResolveDataset(dir, o.images)
		base, _, _ := strings.Cut(filepath.Base(spec.Dataset.Path), "?")
		spec.Name = strings.TrimSuffix(base, filepath.Ext(base))
		if len(o.tasks) == 0 {
			return nil, usageError{errors.New("--images needs --task; see: ddiff tasks")}
		}
	default:
		return nil, usageError{errors.New("give a campaign file, or --images and --task")}
	}
	o.override(flags, spec)
	if err := spec.Validate(shard.Vocabulary()); err != nil {
		return nil, usageError{err}
	}
	return spec, nil
}

// override puts the flags that were given on top of the campaign.
func (o runOptions) override(flags *pflag.FlagSet, s *manifest.Spec) {
	given := func(name, field string) bool {
		if flags.Changed(name) {
			s.Override(field, "--"+name)
		}
		return flags.Changed(name)
	}
	if given("task", "tasks") {
		s.Tasks = nil
		for _, t := range o.tasks {
			s.Tasks = append(s.Tasks, manifest.TaskSpec{Name: t})
		}
	}
	if given("method", "methods") {
		s.Methods = o.methods
	}
	if given("out", "output") {
		s.Output = o.spec.Output
	}
	if given("preset", "preset") {
		s.Preset = o.spec.Preset
	}
	if given("prior", "prior") {
		s.Prior = o.spec.Prior
	}
	if given("steps", "steps") {
		s.Steps = o.spec.Steps
		for i := range s.Tasks {
			s.Tasks[i].Steps = 0
		}
	}
	if given("sigma", "sigma") {
		s.Sigma = o.spec.Sigma
		for i := range s.Tasks {
			s.Tasks[i].Sigma = nil
		}
	}
	if given("seed", "seed") {
		s.Seed = o.spec.Seed
	}
	if given("runs", "runs") {
		s.Runs = o.spec.Runs
	}
	if given("batch", "batch") {
		s.Batch = o.spec.Batch
	}
	if given("size", "dataset.size") {
		s.Dataset.Size = o.spec.Dataset.Size
	}
	if given("limit", "dataset.limit") {
		s.Dataset.Limit = o.spec.Dataset.Limit
	}
	if given("fit", "dataset.fit") {
		s.Dataset.Fit = manifest.Fit(o.fit)
	}
}

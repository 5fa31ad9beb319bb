package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/storage"
)

// restoreOptions are the flags of restore.
type restoreOptions struct {
	runOptions
	into    string // folder of the restored pictures; empty: that of each input
	results string // output of the campaign, which is kept
	force   bool
}

func newRestoreCommand(c shard.Catalogue) *cobra.Command {
	o := restoreOptions{runOptions: runOptions{computeOptions: computeOptions{catalogue: c}}}
	cmd := &cobra.Command{
		Use:   "restore FILES...",
		Short: "Restore degraded pictures",
		Long: "Restore pictures that are degraded already: PNG, JPEG, TIFF or WebP with 8 or 16 bits, or .npy measurements.\n" +
			"FILES are files and folders. The task names the degradation; inpainting needs --mask, motion and nonlinear\n" +
			"blur need --kernel, Gaussian blur may have it. Black is -1 and white is 1 in the units of --sigma.\n" +
			"The restored picture of photo.jpg is photo.restored.png beside it, with its passport. An existing file is\n" +
			"replaced only with --force. Rerun the same command after an interruption to resume.",
		Example: "  ddiff restore small.jpg --task super_resolution --sigma 0.02\n" +
			"  ddiff restore scratched.png --task inpaint --mask scratches.png --out restored\n" +
			"  ddiff restore shaken --task motion_deblur --kernel kernel.png --results out/shaken",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), cmd.Flags(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.tasks, "task", nil, "`task` that degraded the pictures; see: ddiff tasks")
	f.StringArrayVar(&o.own, "operator", nil, "ONNX `file` of an operator of your own in place of --task; see: ddiff operator check")
	f.Var(&sigmaFlag{&o.spec.Sigma}, "sigma", "standard deviation of the noise in the pictures, from black at -1 to white at 1, or auto (default 0.05)")
	addPhotons(f, &o.photons)
	o.measurements.add(f)
	f.StringVarP(&o.into, "out", "o", "", "`directory` for the restored pictures (default: beside each input)")
	f.BoolVar(&o.force, "force", false, "replace existing files")
	f.StringVar(&o.results, "results", "", "`directory` in which to keep results with report and curves (default: they are removed)")
	f.StringSliceVar(&o.methods, "method", nil, "`methods`, separated by commas; see: ddiff methods (default ddiff)")
	f.StringVar(&o.spec.Preset, "preset", "", "solver settings: "+words(c.Methods.Presets())+" (default \"natural\")")
	f.StringVar(&o.spec.Prior, "prior", "", "bundled, an ONNX file or the `folder` of a bundle (default \"bundled\")")
	f.IntVar(&o.spec.Steps, "steps", 0, "solver steps (default: the preset's)")
	f.StringArrayVar(&o.params, "param", nil, "operator parameter `NAME=VALUE`; repeatable")
	f.StringArrayVar(&o.solver, "solver", nil, "solver parameter `NAME=VALUE` in place of the preset's; repeatable")
	f.StringArrayVar(&o.sweeps, "set", nil, "one restoration per value of `NAME=VALUE[,VALUE]`: sigma, photons, steps, an operator or solver parameter; repeatable")
	f.Uint64Var(&o.spec.Seed, "seed", 0, "`seed` of every random draw")
	f.IntVar(&o.spec.Runs, "runs", 0, "restorations per picture, each with other solver noise (default 1)")
	f.IntVar(&o.spec.Batch, "batch", 0, "pictures per solver call (0: automatic)")
	f.StringVar(&o.spec.Tile, "tile", "", "side in `pixels` of the tiles in which the network predicts on larger pictures: auto, off, or a number (default off)")
	f.IntVar(&o.overlap, "overlap", 0, "least number of `pixels` that neighbouring tiles share (default a quarter of the tile)")
	addCampaignPrecision(f, &o.spec.Precision)
	f.BoolVar(&o.json, "json", false, "print one JSON object per restoration, and one with the counts")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print no progress, only the restored pictures and the counts")
	o.addDevice(f, onnxruntime.ProviderAuto)
	o.addBuild(f)
	o.stages.add(f)
	o.process.add(f, "off")
	return cmd
}

// run restores the files.
func (o restoreOptions) run(ctx context.Context, flags *pflag.FlagSet, args []string, stdout, stderr io.Writer) error {
	inputs, skipped, err := findPictures(args)
	if err != nil {
		return usageError{fmt.Errorf("restore: %w", err)}
	}
	spec, err := o.plan(flags, inputs)
	if err != nil {
		return err
	}
	remove := func() error { return nil }
	if o.results == "" {
		if spec.Output, err = hiddenOutput(spec, inputs); err != nil {
			return usageError{fmt.Errorf("restore: there is no cache for the results: %w; give --results DIR", err)}
		}
		remove = func() error { return os.RemoveAll(spec.Output) }
	}
	_, existed := os.Stat(spec.Output)
	w := &pictureWriter{restoreOptions: o, spec: spec, removeInto: func() {}, stdout: stdout, stderr: stderr, inputs: map[string]*picture{}, waiting: map[string][]manifest.Result{}}
	defer func() { w.removeInto() }()
	todo, err := w.choose(ctx, inputs)
	if err != nil {
		return err
	}
	if skipped > 0 && !o.json && !o.quiet {
		fmt.Fprintf(stderr, "skipped %d files that are neither pictures nor .npy\n", skipped)
	}
	if len(todo) == 0 {
		return w.summarize(manifest.Counts{}, nil)
	}
	shown := o.runOptions
	if o.json {
		shown.json, stdout = true, io.Discard // pictureWriter prints the objects
	}
	var counts manifest.Counts
	var ran error
	err = withEmbedded(ctx, spec, shown, stdout, stderr, func(e embedded) error {
		e.rows, e.settled, w.store = pictureRows(todo), func(res manifest.Result) { w.settled(ctx, res) }, e.store
		run, worker, err := e.parts(e.show.entered)
		if err != nil {
			return err
		}
		e.show.begin()
		ran = e.process(ctx, run, worker)
		e.show.stop()
		counts = run.Counts()
		if ran != nil && counts.Items == 0 {
			return ran
		}
		_, closed := run.Close(context.WithoutCancel(ctx))
		return closed
	})
	if counts.Items == 0 && err != nil {
		if errors.Is(existed, fs.ErrNotExist) && !errors.Is(err, storage.ErrLocked) {
			discardOutput(spec.Output)
		}
		return err
	}
	err = errors.Join(err, ran, w.summarize(counts, ran))
	if ran == nil && w.unwritten == 0 {
		err = errors.Join(err, remove())
	}
	return err
}

// plan returns the campaign of a restoration. The catalogue of o gets its operator file.
func (o *restoreOptions) plan(flags *pflag.FlagSet, inputs []*picture) (*manifest.Spec, error) {
	if len(o.tasks)+len(o.own) != 1 || len(o.tasks) == 1 && o.tasks[0] == allTasks {
		return nil, usageError{errors.New("restore: give one --task NAME, or one --operator FILE: the degradation of the pictures; see: ddiff tasks")}
	}
	spec := manifest.Default()
	spec.Name, spec.Dataset.Path, spec.Dataset.Measurements = "restore", inputs[0].path, true
	if o.results != "" {
		spec.Output = o.results
	}
	o.spec.Output = spec.Output // --out is not that of run
	if err := o.override(flags, spec); err != nil {
		if exitCode(err) == exitPrior {
			return nil, err
		}
		return nil, usageError{err}
	}
	vocabulary := o.catalogue.Vocabulary()
	vocabulary.Required = nil // see below: every input is required
	if err := spec.Validate(vocabulary); err != nil {
		return nil, usageError{err}
	}
	given := map[string]string{"mask": spec.Dataset.Mask, "kernel": spec.Dataset.Kernel}
	if input := o.catalogue.Operators.Input(spec.Tasks[0].Name); input != "" && given[input] == "" && !o.catalogue.Operators.Optional(spec.Tasks[0].Name) {
		return nil, usageError{fmt.Errorf("restore: task %s needs the %s of the pictures; give --%s FILE", spec.Tasks[0].Name, input, input)}
	}
	return spec, nil
}

// hiddenOutput returns the folder of the results that are not kept: in the user's cache, the same for the same campaign and inputs,
// so that an interrupted restoration resumes.
func hiddenOutput(spec *manifest.Spec, inputs []*picture) (string, error) {
	parent, err := restorationsFolder()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintln(sum, spec.ID())
	for _, in := range inputs {
		fmt.Fprintln(sum, in.path)
	}
	return filepath.Join(parent, hex.EncodeToString(sum.Sum(nil)[:8])), nil
}

// restorationsFolder returns the folder of the results that are not kept.
func restorationsFolder() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "ddiff", "restore"), err
}

// pictureRows is a dataset of measurements.
func pictureRows(inputs []*picture) shard.Rows {
	return func(context.Context, manifest.Dataset, func(string)) iter.Seq2[manifest.Row, error] {
		return func(yield func(manifest.Row, error) bool) {
			for i, in := range inputs {
				row := manifest.Row{Index: i, Name: in.name, Measurement: in.path}
				if err := manifest.CheckFile(in.path); err != nil {
					row.Err = &manifest.FieldError{File: in.name, Err: err}
				}
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}

// restoration is the JSON object of a restoration.
type restoration struct {
	Input    string             `json:"input"`
	Output   string             `json:"output,omitempty"`
	Outcome  manifest.Outcome   `json:"outcome"`
	Reason   string             `json:"reason,omitempty"`
	Warnings []manifest.Warning `json:"warnings,omitempty"`
	ID       string             `json:"id,omitempty"`
	Task     string             `json:"task"`
	Metrics  manifest.Metrics   `json:"metrics"`
	// Sigma is the noise level that was estimated; nil: it was given.
	Sigma *float64 `json:"estimated_sigma,omitempty"`
}

func (w *pictureWriter) printJSON(v any) {
	// Where the reader of the pipe is gone, the counts fail too.
	_ = json.NewEncoder(w.stdout).Encode(v)
}

package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ddiff/internal/cli"
	"ddiff/internal/cli/campaign"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/photograph"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// white is that of 8 bits.
const white = 255

// restoreOptions are the flags of restore.
type restoreOptions struct {
	campaign.Options
	into    string // folder of the restored pictures; empty: that of each input
	results string // output of the campaign, which is kept
	force   bool
	prefer  string               // see [prefer]
	chosen  bool                 // nobody stated the task
	blur    photograph.BlurShape // of the width that is estimated in each picture; empty: none
	outputOptions
}

func newRestoreCommand(c manifest.Catalogue) *cobra.Command {
	o := restoreOptions{Options: campaign.Options{ComputeOptions: cli.ComputeOptions{Catalogue: c}}}
	cmd := &cobra.Command{
		Use:   "restore FILES...",
		Short: "Restore degraded pictures",
		Long: "Restore pictures that are degraded already: PNG, JPEG, TIFF, WebP, BMP or GIF, or .npy measurements.\n" +
			"FILES are files and folders. Without a task, noise or strong JPEG compression is looked for in each, and removed\n" +
			"where this is certain; the others are left as they are.\n" +
			"The task names the degradation; inpainting needs --mask, motion and nonlinear\n" +
			"blur need --kernel, Gaussian blur --param std=auto, or std=N, its width in 1/256 of the shorter\n" +
			"side, or --kernel, which may be disk:auto or disk:RADIUS for a lens out of focus. Black is -1 and white is 1 in the units of --sigma.\n" +
			"The restored picture of photo.jpg is photo.restored.jpg beside it, with camera, date and passport. An existing\n" +
			"file is replaced only with --force. Rerun the same command after an interruption to resume.",
		Example: "  ddiff restore photo.jpg\n" +
			"  ddiff restore small.jpg --task super_resolution --sigma 0.02\n" +
			"  ddiff restore scratched.png --task inpaint --mask scratches.png \\\n      --out restored\n" +
			"  ddiff restore shaken --task motion_deblur --kernel kernel.png \\\n      --results out/shaken",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), cmd.Flags(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.Tasks, "task", nil, "`task` that degraded the pictures; see: ddiff tasks")
	f.StringArrayVar(&o.OperatorFiles, "operator", nil, "ONNX `file` of an operator of your own in place of --task; see: ddiff operator check")
	f.Var(&campaign.SigmaFlag{Sigma: &o.Spec.Sigma}, "sigma", "standard deviation of the noise in the pictures, from black at -1 to white at 1, or auto (default 0.05)")
	campaign.AddPhotons(f, &o.Photons)
	o.Measurements.Add(f)
	f.StringVarP(&o.into, "out", "o", "", "`directory` for the restored pictures, or, of one picture, its file (default: beside each input)")
	o.add(f)
	f.BoolVar(&o.force, "force", false, "restore again, and replace earlier restored pictures")
	f.StringVar(&o.results, "results", "", "`directory` in which to keep results with report and curves (default: none are kept)")
	f.StringSliceVar(&o.Methods, "method", nil, "`methods`, separated by commas; or auto, the best known for the task; see: ddiff methods (default auto)")
	f.StringVar(&o.prefer, "prefer", "", "`detail`: sharper, in super_resolution by 4 or more; it cost 0.55 dB on eight photographs (default: the highest PSNR)")
	f.StringVar(&o.Spec.Preset, "preset", "", "solver `settings`; see: ddiff tasks (default \"natural\")")
	f.StringVar(&o.Spec.Prior, "prior", "", "bundled, bundled:base, an ONNX file or the `folder` of a bundle (default \"bundled\")")
	f.IntVar(&o.Spec.Steps, "steps", 0, "solver steps (default: the preset's)")
	f.StringArrayVar(&o.Params, "param", nil, "operator parameter `NAME=VALUE`; repeatable")
	f.StringArrayVar(&o.Solver, "solver", nil, "solver parameter `NAME=VALUE` in place of the preset's; repeatable")
	f.StringArrayVar(&o.Sweeps, "set", nil, "one restoration per value of `NAME=VALUE[,VALUE]`: sigma, photons, steps, an operator or solver parameter; repeatable")
	f.Uint64Var(&o.Spec.Seed, "seed", 0, "`seed` of every random draw")
	f.IntVar(&o.Spec.Runs, "runs", 0, "restorations per picture, each with other solver noise; above 1 also their mean and deviation (default 1)")
	f.IntVar(&o.Spec.Batch, "batch", 0, "pictures per solver call (0: automatic)")
	f.StringVar(&o.Spec.Tile, "tile", "", "side in `pixels` of the tiles in which the network predicts on larger pictures: auto, off, or a number (default: auto where the whole picture needs too much memory)")
	f.IntVar(&o.Overlap, "overlap", 0, "least number of `pixels` that neighbouring tiles share (default a quarter of the tile; an eighth without --tile)")
	campaign.AddPrecision(f, &o.Spec.Precision)
	o.AddStates(f)
	f.BoolVar(&o.JSON, "json", false, "print one JSON object per restoration, and one with the counts")
	f.BoolVarP(&o.Quiet, "quiet", "q", false, "print no progress, only the restored pictures, warnings and the counts")
	o.AddDevices(f, onnxruntime.ProviderAuto)
	o.Stages.Add(f)
	o.Process.Add(f, "off")
	return cmd
}

// run restores the files.
func (o restoreOptions) run(ctx context.Context, flags *pflag.FlagSet, args []string, stdout, stderr io.Writer) error {
	inputs, refused, skips, err := findPictures(args, o.recursive)
	if err == nil {
		err = o.resolveOutput(inputs)
	}
	if err != nil {
		return cli.Usage(fmt.Errorf("restore: %w", err))
	}
	distinguish(inputs, o.into)
	inputs, dropped := o.dropRestored(inputs)
	groups, err := o.look(flags, inputs, refused, &skips, stderr)
	if err != nil {
		return cli.Usage(fmt.Errorf("restore: %w", err))
	}
	if !o.JSON {
		fmt.Fprint(stderr, skips.Report(o.Quiet))
	}
	total := &totals{left: skips.Count(skipSound), skipped: dropped, JSON: o.JSON, quiet: o.Quiet, stdout: stdout, stderr: stderr, inputs: slices.Clone(inputs), skips: skips}
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		total.fail(name, "", refused[name])
	}
	for i, g := range groups {
		began := total.began
		if err = o.restoreGroup(ctx, flags, g, total); err == nil {
			continue
		}
		if began < total.began || len(groups) == 1 || ctx.Err() != nil {
			for _, rest := range groups[i+1:] {
				total.pending += len(rest.inputs)
			}
			break
		}
		for _, in := range g.inputs { // the task does not suit the flags
			total.fail(in.name, g.task, err)
		}
		err = nil
	}
	if err != nil && total.began == 0 {
		return err
	}
	return errors.Join(err, total.summarize(err))
}

// restoreGroup restores pictures with one task, and adds to the counts.
func (o restoreOptions) restoreGroup(ctx context.Context, flags *pflag.FlagSet, g group, total *totals) error {
	stderr, inputs := total.stderr, g.inputs
	g.choose(&o, flags)
	o.chosen = g.task != ""
	if err := o.takeBlur(); err != nil {
		return cli.Usage(fmt.Errorf("restore: %w", err))
	}
	spec, err := o.plan(flags, inputs)
	if err != nil {
		return err
	}
	if err := errors.Join(o.lookAtDraws(spec, stderr), o.checkPreview(spec)); err != nil {
		return cli.Usage(fmt.Errorf("restore: %w", err))
	}
	if spec.KeepStates != "" && o.results == "" {
		return cli.Usage(errors.New("restore: --keep-states needs --results DIR, where the states are kept"))
	}
	for _, flag := range []string{"trace-file", "stage-timeout"} {
		if flags.Changed(flag) && o.results == "" {
			return cli.Usage(fmt.Errorf("restore: --%s needs --results DIR: it is one of a campaign", flag))
		}
	}
	spec.KeepObserved = o.keep(flags, spec)
	w := &pictureWriter{restoreOptions: o, spec: spec, total: total, stdout: total.stdout, stderr: stderr, inputs: map[string]*picture{}, waiting: map[string][]restored{}}
	log, err := o.Process.Logger(stderr)
	if err != nil {
		return err
	}
	runtimes, err := w.configure(log)
	if err != nil {
		return err
	}
	defer func() { _ = cli.CloseRuntimes(runtimes) }()
	if choice := spec.Tasks[0].Choice; choice != "" && !o.JSON && !o.Quiet {
		fmt.Fprintln(stderr, "method:", cli.Printable(choice))
	}
	inputs = w.estimateBlurs(inputs)
	if o.preview > 0 {
		dir, err := os.MkdirTemp("", cli.PreviewFolder+"*")
		if err != nil {
			return fmt.Errorf("--preview: %w", err)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // in the folder for temporary files
		inputs = w.cropPreviews(dir, inputs)
	}
	todo, err := w.choose(inputs)
	if err != nil {
		return err
	}
	defer w.count()
	if len(todo) == 0 {
		return nil
	}
	if o.results != "" { // a campaign opens the devices itself
		if err := errors.Join(w.tileCampaign(ctx, runtimes, log, todo), cli.CloseRuntimes(runtimes)); err != nil {
			return err
		}
		runtimes = nil
		return w.runCampaign(ctx, todo)
	}
	if runtimes == nil {
		if runtimes, err = o.OpenAll(log); err != nil {
			return err
		}
	}
	w.counts, err = w.restore(ctx, runtimes, todo)
	return err
}

// plan returns the campaign of a restoration. The catalogue of o gets its operator file.
func (o *restoreOptions) plan(flags *pflag.FlagSet, inputs []*picture) (*manifest.Spec, error) {
	if len(o.Tasks)+len(o.OperatorFiles) != 1 || len(o.Tasks) == 1 && o.Tasks[0] == campaign.AllTasks {
		return nil, cli.Usage(fmt.Errorf("restore: %w", errNoTask))
	}
	for _, names := range [][]string{o.Tasks, o.Methods} {
		for i, name := range names {
			names[i] = strings.ToLower(name)
		}
	}
	spec := manifest.Default()
	spec.Name, spec.Dataset.Path, spec.Dataset.Measurements = "restore", inputs[0].path, true
	if o.results != "" {
		spec.Output = o.results
	}
	o.Spec.Output = spec.Output    // --out is not that of run
	if len(o.OperatorFiles) == 0 { // an operator of one's own has its own form
		spec.Dataset.KernelForm = item.KernelPSF
	}
	for _, name := range o.Methods {
		if _, err := o.Catalogue.Methods.Find(name); err != nil && name != autoMethod {
			names := append([]string{autoMethod}, o.Catalogue.Methods.Names()...)
			return nil, cli.Usage(fmt.Errorf("--method: %w", manifest.Unknown("method", name, names)))
		}
	}
	auto := !flags.Changed("method")
	if slices.Contains(o.Methods, autoMethod) {
		if len(o.Methods) > 1 {
			return nil, cli.Usage(errors.New("restore: --method auto chooses the method; name no other one with it"))
		}
		auto = true
		flags.Lookup("method").Changed = false // the default of a campaign
	}
	if level := float64(o.Spec.Sigma); flags.Changed("sigma") && level > 1 && level < white {
		return nil, cli.Usage(fmt.Errorf("restore: --sigma %g is out of range: black is -1 and white is 1; %g of 255 levels are --sigma %.3g", level, level, 2*level/white))
	}
	if err := o.Override(flags, spec); err != nil {
		if cli.ExitCode(err) == cli.ExitPrior {
			return nil, err
		}
		return nil, cli.Usage(err)
	}
	auto = auto && !slices.ContainsFunc([]string{"preset", "solver"}, flags.Changed)
	if err := o.complete(spec, auto); err != nil {
		return nil, err
	}
	return spec, nil
}

// complete chooses method and settings of a restoration, if auto, and checks that it has its inputs.
func (o *restoreOptions) complete(spec *manifest.Spec, auto bool) error {
	// Settings of a person, and other priors than the measured one, leave nothing to choose.
	auto = auto && (spec.Prior == manifest.PriorBundled || spec.Prior == manifest.PriorBase)
	if auto {
		if err := chooseMethods(spec, o.Catalogue, o.blur != ""); err != nil {
			return err
		}
	}
	if o.prefer != "" {
		if err := prefer(o.prefer, spec, auto && len(o.Sweeps) == 0); err != nil {
			return err
		}
	}
	given := map[string]string{"mask": spec.Dataset.Mask, "kernel": spec.Dataset.Kernel}
	d := o.Catalogue.Operators.Known(spec.Tasks[0].Name)
	if d.Width != "" && spec.Dataset.Kernel == "" && !o.hasParam(d.Width) && o.blur == "" {
		return cli.Usage(fmt.Errorf("restore: task %s needs the width of the blur: give --param %[2]s=auto, or %[2]s=N, N = 256 · (standard deviation in pixels) / "+
			"(shorter side in pixels), or the blur itself with --kernel FILE; --sigma is the noise", d.Name, d.Width))
	}
	if d.Input != "" && given[d.Input] == "" && d.Given == nil {
		return cli.Usage(fmt.Errorf("restore: task %s needs the %s of the pictures; give --%s FILE", spec.Tasks[0].Name, d.Input, d.Input))
	}
	if o.keepObserved && (d.Input != photograph.Mask || spec.Dataset.Mask == "") {
		return cli.Usage(fmt.Errorf("restore: observed pixels are kept only in inpainting with a mask, task %s observes none as they are; do not ask to keep them", spec.Tasks[0].Name))
	}
	return nil
}

// hasParam reports whether --param or --set has an operator parameter.
func (o *restoreOptions) hasParam(name string) bool {
	return slices.ContainsFunc(slices.Concat(o.Params, o.Sweeps), func(text string) bool {
		key, _, _ := strings.Cut(text, "=")
		return key == name || strings.HasSuffix(key, "."+name)
	})
}

// restoration is the JSON object of a restoration.
type restoration struct {
	Input    string         `json:"input"`
	Output   string         `json:"output,omitempty"`
	Outcome  item.Outcome   `json:"outcome"`
	Reason   string         `json:"reason,omitempty"`
	Warnings []item.Warning `json:"warnings,omitempty"`
	ID       string         `json:"id,omitempty"`
	Task     string         `json:"task"`
	Method   string         `json:"method,omitempty"`
	Choice   string         `json:"choice,omitempty"` // why it was chosen; empty: a person named it
	Metrics  item.Metrics   `json:"metrics"`
	// Sigma is the noise level that was estimated; nil: it was given.
	Sigma *float64 `json:"estimated_sigma,omitempty"`
}

func (w *pictureWriter) printJSON(v any) {
	// Where the reader of the pipe is gone, the counts fail too.
	_ = json.NewEncoder(w.stdout).Encode(v)
}

// Package campaign turns the flags and arguments of a command into a campaign: those of ddiff run, and the parts of them that
// ddiff restore, tune, bench and submit have.
//
// [Options.Read] returns a campaign that is valid for the catalogue, with the operator files that it names. The package starts
// nothing and opens no device, except to choose the precision auto of a plan.
package campaign

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"ddiff/internal/cli"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// Options are the values of the flags of a campaign that a command runs in this process. Spec has those that override fields of the
// campaign file; the catalogue of ComputeOptions has the methods and operators, and after Read also the operator files.
type Options struct {
	images string
	// Measurement is a dataset of measurements in place of images.
	Measurement  string
	Measurements MeasurementFlags

	Tasks         []string
	OperatorFiles []string // paths of --operator
	Methods       []string
	Params        []string      // NAME=VALUE or TASK.NAME=VALUE
	Solver        []string      // NAME=VALUE
	Sweeps        []string      // NAME=VALUE[,VALUE...]
	Spec          manifest.Spec // values of the flags that override the campaign
	Overlap       int           // of tiles
	Photons       float64
	Sources       cli.SourceFlags
	Stages        cli.StageFlags
	DryRun        bool
	JSON          bool
	Quiet         bool
	OpenPage      bool // in the browser

	cli.ComputeOptions
	Process cli.ProcessFlags
}

// AddMain adds the flags of a campaign that most people need.
func (o *Options) AddMain(f *pflag.FlagSet) {
	f.StringSliceVar(&o.Tasks, "task", nil, "`tasks`, separated by commas, or all (without inpaint, which needs a mask); a task of the campaign file has the settings of the file; see: ddiff tasks")
	f.StringArrayVar(&o.OperatorFiles, "operator", nil, "ONNX `file` of an operator of your own, as a task named after the file; repeatable; see: ddiff operator check")
	f.StringVarP(&o.Spec.Output, "out", "o", "", "`directory` for the results, or s3://bucket/prefix?endpoint=URL (default \"out\")")
	f.StringSliceVar(&o.Methods, "method", nil, "`methods`, separated by commas; see: ddiff methods (default ddiff)")
	f.StringVar(&o.Spec.Preset, "preset", "", "solver `settings`; see: ddiff tasks (default \"natural\")")
	f.StringVar(&o.Spec.Prior, "prior", "", "bundled, bundled:base, an ONNX file or the `folder` of a bundle (default \"bundled\")")
	f.IntVar(&o.Spec.Steps, "steps", 0, "solver steps (default: the preset's)")
	f.IntVar(&o.Spec.Dataset.Size, "size", 0, "working size in `pixels` (default 256)")
	f.IntVar(&o.Spec.Dataset.Limit, "limit", 0, "read only the first `rows` of the dataset")
}

// AddSettings adds the other flags that override a campaign.
func (o *Options) AddSettings(f *pflag.FlagSet) {
	f.StringVar(&o.images, "images", "", "images, as a single `path` or address: in place of the arguments, or of the campaign file's dataset")
	f.StringArrayVar(&o.Params, "param", nil, "operator parameter `NAME=VALUE` of all tasks that have it, or TASK.NAME=VALUE; repeatable")
	f.Var(&SigmaFlag{Sigma: &o.Spec.Sigma}, "sigma", "standard deviation of the measurement noise, or auto for stored measurements (default 0.05)")
	AddPhotons(f, &o.Photons)
	f.Uint64Var(&o.Spec.Seed, "seed", 0, "`seed` of every random draw")
	f.IntVar(&o.Spec.Runs, "runs", 0, "runs per item, each with other solver noise (default 1)")
	f.StringVar((*string)(&o.Spec.Select), "select", "", "`rule` that selects the run to report: "+cli.Words(manifest.Selections())+" (default first)")
	f.StringArrayVar(&o.Solver, "solver", nil, "solver parameter `NAME=VALUE` in place of the preset's; repeatable")
	f.StringArrayVar(&o.Sweeps, "set", nil,
		"sweep over `NAME=VALUE[,VALUE]`: sigma, photons, steps, an operator or solver parameter; repeatable, all combinations run")
	f.StringVar((*string)(&o.Spec.Dataset.Fit), "fit", "", "how images reach the working size: center_crop, resize or pad (default center_crop)")
	f.StringVar(&o.Spec.Tile, "tile", "", "side in `pixels` of the tiles in which the network predicts on larger images: auto, off, or a number (default off)")
	f.IntVar(&o.Overlap, "overlap", 0, "least number of `pixels` that neighbouring tiles share (default a quarter of the tile)")
	f.IntVar(&o.Spec.Batch, "batch", 0, "images per solver call (0: automatic)")
	AddPrecision(f, &o.Spec.Precision)
	o.AddStates(f)
}

// AddStates adds the flag of the states that are kept.
func (o *Options) AddStates(f *pflag.FlagSet) {
	f.StringVar(&o.Spec.KeepStates, "keep-states", "", "also store x_t after these `steps`, as 0,10,20 or \"every 10\" (default: none)")
}

// AddPhotons adds the flag for the noise of photons.
func AddPhotons(f *pflag.FlagSet, photons *float64) {
	f.Float64Var(photons, "photons", 0, "mean photon `count` of a white pixel: adds shot noise to the noise of sigma (default: none)")
}

// AddParts adds the flags of the parts of a run.
func (o *Options) AddParts(f *pflag.FlagSet) {
	o.AddDevices(f, onnxruntime.ProviderAuto)
	o.AddBuild(f)
	o.Sources.Add(f)
	o.Stages.Add(f)
	o.Process.Add(f, "off")
}

// SigmaFlag is the value of --sigma.
type SigmaFlag struct{ Sigma *item.Sigma }

// String implements pflag.Value.
func (f *SigmaFlag) String() string {
	if f.Sigma == nil {
		return ""
	}
	return f.Sigma.String()
}

// Set implements pflag.Value.
func (f *SigmaFlag) Set(text string) (err error) {
	*f.Sigma, err = manifest.ParseSigma(text)
	return err
}

// Type implements pflag.Value.
func (f *SigmaFlag) Type() string { return "float" }

// MeasurementFlags are the flags about stored measurements.
type MeasurementFlags struct {
	values string // of black and white, LOW,HIGH
	mask   string
	kernel string
	form   item.DrawForm
}

// Add registers the flags.
func (m *MeasurementFlags) Add(f *pflag.FlagSet) {
	f.StringVar(&m.values, "measurement-range", "", "values of black and white in measurements, as `LOW,HIGH`: of .npy, or numbers in a picture, as in 0,4095 (default: those of the task, all of the range for pictures)")
	m.AddFiles(f)
}

// AddFiles registers the flags of mask and kernel.
func (m *MeasurementFlags) AddFiles(f *pflag.FlagSet) {
	f.StringVar(&m.mask, "mask", "", "mask `file` for inpainting: an image whose bright half is observed, or .npy of zeros and ones")
	f.StringVar(&m.kernel, "kernel", "", "blur kernel `file` for motion, nonlinear and Gaussian blur: an image or .npy; square, odd side")
	f.StringVar(&m.form.MaskShows, "mask-shows", "", "meaning of the bright pixels of masks: `lost or kept` (default kept, and a mask that looks inverted is doubted)")
	f.StringVar(&m.form.KernelForm, "kernel-form", "", "`psf or correlation`: psf, the image of a point of light, or the kernel of a correlation, as in the paper's code (default psf in restore, else correlation)")
}

// Kernel returns the value of --kernel.
func (m *MeasurementFlags) Kernel() string { return m.kernel }

// SetKernel replaces the value of --kernel by a file.
func (m *MeasurementFlags) SetKernel(path string) { m.kernel = path }

// set sets the fields of a dataset.
func (m *MeasurementFlags) set(flags *pflag.FlagSet, s *manifest.Spec) error {
	if flags.Changed("measurement-range") {
		low, high, _ := strings.Cut(m.values, ",")
		a, err1 := strconv.ParseFloat(strings.TrimSpace(low), 64)
		b, err2 := strconv.ParseFloat(strings.TrimSpace(high), 64)
		if err1 != nil || err2 != nil {
			return fmt.Errorf("--measurement-range: %q is not LOW,HIGH, as in 0,255", m.values)
		}
		s.Dataset.MeasurementRange = &item.ValueRange{a, b}
		s.Override("dataset.measurement_range", "--measurement-range")
	}
	for _, f := range []struct {
		flag, word string
		into       *string
	}{{"mask-shows", m.form.MaskShows, &s.Dataset.MaskShows}, {"kernel-form", m.form.KernelForm, &s.Dataset.KernelForm}} {
		if flags.Changed(f.flag) {
			*f.into = f.word
			s.Override("dataset."+strings.ReplaceAll(f.flag, "-", "_"), "--"+f.flag)
		}
	}
	for _, f := range []struct {
		flag, path string
		into       *string
	}{{"mask", m.mask, &s.Dataset.Mask}, {"kernel", m.kernel, &s.Dataset.Kernel}} {
		if !flags.Changed(f.flag) {
			continue
		}
		dir, err := os.Getwd()
		if err != nil {
			return fmt.Errorf("read --%s: %w", f.flag, err)
		}
		*f.into = f.path
		if !filepath.IsAbs(f.path) && !manifest.IsAddress(f.path) {
			*f.into = filepath.Join(dir, f.path)
		}
		if !manifest.IsAddress(f.path) {
			if err := manifest.CheckFile(*f.into); err != nil {
				return fmt.Errorf("--%s %s: %w", f.flag, f.path, err)
			}
		}
		s.Override("dataset."+f.flag, "--"+f.flag)
	}
	return nil
}

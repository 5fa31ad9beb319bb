package main

import (
	"strings"
	"time"

	"github.com/spf13/pflag"

	"ddiff/manifest"
	"ddiff/restore/onnx"
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
	o.addDevice(f, onnx.ProviderAuto)
	o.addBuild(f)
	o.sources.add(f)
	o.stages.add(f)
	o.process.add(f, "off")
}

package campaign

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/pflag"

	"ddiff/internal/cli"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// Read reads the campaign file, or makes a campaign for images, and lets the flags override it. Skipped has the
// arguments that are no images. The catalogue of o gets the campaign's operator files.
func (o *Options) Read(flags *pflag.FlagSet, args []string) (spec *manifest.Spec, skipped manifest.Skips, err error) {
	if len(args) == 1 && isCampaign(args[0]) {
		spec, err = o.loadCampaign(args[0])
	} else {
		spec, skipped, err = o.imageCampaign(args)
	}
	if err != nil {
		return nil, nil, cli.Usage(err)
	}
	swept := !flags.Changed("operator") && len(distinctTasks(spec)) == len(spec.Tasks)
	if err := o.Override(flags, spec); err != nil {
		if cli.ExitCode(err) == cli.ExitPrior {
			return nil, nil, err
		}
		return nil, nil, cli.Usage(err)
	}
	err = spec.Validate(o.Catalogue)
	if swept && err != nil { // a flag in place of a list makes cells of the file's sweep equal
		tasks := spec.Tasks
		if spec.Tasks = distinctTasks(spec); len(spec.Tasks) < len(tasks) && spec.Validate(o.Catalogue) == nil {
			return spec, skipped, nil
		}
		spec.Tasks = tasks
	}
	if err != nil {
		return nil, nil, cli.Usage(err)
	}
	return spec, skipped, nil
}

// distinctTasks returns the tasks of a campaign without those that repeat another one with the same settings.
func distinctTasks(s *manifest.Spec) []item.Task {
	var out []item.Task
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

// Override replaces fields of the campaign by the flags that are set.
func (o *Options) Override(flags *pflag.FlagSet, s *manifest.Spec) error {
	own, err := operatorTasks(o.OperatorFiles)
	if err != nil {
		return err
	}
	if flags.Changed("task") {
		if err := s.ChooseTasks(namedTasks(o.Tasks, o.Catalogue), "--task"); err != nil {
			return err
		}
	}
	eachTask := func(change func(t *item.Task)) {
		for i := range s.Tasks {
			change(&s.Tasks[i])
		}
	}
	for _, f := range []struct {
		flag, field string
		set         func()
	}{
		{"out", "output", func() { s.Output = o.Spec.Output }},
		{"preset", "preset", func() { s.Preset = o.Spec.Preset }},
		{"prior", "prior", func() { s.Prior = o.Spec.Prior }},
		{"steps", "steps", func() {
			s.Steps = o.Spec.Steps
			eachTask(func(t *item.Task) { t.Steps = 0 })
		}},
		{"sigma", "sigma", func() {
			s.Sigma = o.Spec.Sigma
			eachTask(func(t *item.Task) { t.Sigma = nil })
		}},
		{"photons", "photons", func() {
			s.Photons = &o.Photons
			eachTask(func(t *item.Task) { t.Photons = nil })
		}},
		{"seed", "seed", func() { s.Seed = o.Spec.Seed }},
		{"runs", "runs", func() {
			s.Runs = o.Spec.Runs
			eachTask(func(t *item.Task) { t.Runs = 0 })
		}},
		{"select", "select", func() { s.Select = o.Spec.Select }},
		{"batch", "batch", func() { s.Batch = o.Spec.Batch }},
		{"precision", "precision", func() { s.Precision = o.Spec.Precision }},
		{"tile", "tile", func() { s.Tile = o.Spec.Tile }},
		{"keep-states", "keep_states", func() { s.KeepStates = o.Spec.KeepStates }},
		{"overlap", "overlap", func() { s.Overlap = &o.Overlap }},
		{"size", "dataset.size", func() { s.Dataset.Size = o.Spec.Dataset.Size }},
		{"limit", "dataset.limit", func() { s.Dataset.Limit = o.Spec.Dataset.Limit }},
		{"fit", "dataset.fit", func() { s.Dataset.Fit = o.Spec.Dataset.Fit }},
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
			s.Override(fmt.Sprintf("tasks[%d]", len(s.Tasks)), "--operator "+o.OperatorFiles[i])
			s.Tasks = append(s.Tasks, t)
		}
	}
	if o.Catalogue, err = withOperators(o.Catalogue, s, false); err != nil {
		return err
	}
	if flags.Changed("method") {
		s.Override("methods", "--method")
		if err := s.RestrictMethods(o.Methods, o.Catalogue); err != nil {
			return err
		}
	}
	if err := o.Measurements.set(flags, s); err != nil {
		return err
	}
	if err := setParams(s, o.Params, o.Catalogue); err != nil {
		return err
	}
	if err := setSolver(s, o.Solver); err != nil {
		return err
	}
	return setSweeps(s, o.Sweeps, o.Catalogue)
}

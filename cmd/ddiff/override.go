package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/pflag"

	"ddiff/manifest"
)

// campaign reads the campaign file, or makes a campaign for images, and lets the flags override it. Skipped counts the
// arguments that are no images. The catalogue of o gets the campaign's operator files.
func (o *runOptions) campaign(flags *pflag.FlagSet, args []string) (spec *manifest.Spec, skipped int, err error) {
	if len(args) == 1 && isCampaign(args[0]) {
		spec, err = o.loadCampaign(args[0])
	} else {
		spec, skipped, err = o.imageCampaign(args)
	}
	if err != nil {
		return nil, 0, usage(err)
	}
	swept := !flags.Changed("operator") && len(distinctTasks(spec)) == len(spec.Tasks)
	if err := o.override(flags, spec); err != nil {
		if exitCode(err) == exitPrior {
			return nil, 0, err
		}
		return nil, 0, usage(err)
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
		return nil, 0, usage(err)
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

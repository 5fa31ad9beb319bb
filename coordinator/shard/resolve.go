package shard

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"ddiff/manifest"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/prior"
)

// Catalogue holds the methods and operators that campaigns can name. The zero value stands for the built-in ones.
type Catalogue struct {
	Methods   method.Set
	Operators operator.Set
	// Files are the operator files of one campaign by their paths, see [Catalogue.WithFiles].
	Files map[string]*operator.File
}

// WithFiles returns the catalogue of one campaign: Operators has its operator files under the names of its tasks, too. files
// has the files of the campaign by [manifest.TaskSpec.Operator]; outlines are sufficient.
func (c Catalogue) WithFiles(s *manifest.Spec, files map[string]*operator.File) Catalogue {
	if len(files) == 0 {
		return c
	}
	c.Files, c.Operators = files, slices.Clone(c.Operators.Tasks())
	for _, t := range s.Tasks {
		if f := files[t.Operator]; f != nil && !slices.Contains(c.Operators.Names(), t.Name) {
			c.Operators = append(c.Operators, f.Definition(t.Name))
		}
	}
	return c
}

// digests returns the digests of the operator files by their paths.
func (c Catalogue) digests() map[string]string {
	out := map[string]string{}
	for path, f := range c.Files {
		out[path] = f.SHA256
	}
	return out
}

// Program declares what a campaign file may name.
func (c Catalogue) Program() manifest.Program {
	return manifest.Program{Operators: c.Operators, Files: c.Files, Methods: c.Methods}
}

// longest is the length of a schedule that admits all times and steps, while that of the prior is unknown.
const longest = math.MaxInt32

// Admission is Program for new campaigns: with it, values of solver parameters without any effect are an error.
func (c Catalogue) Admission() manifest.Program {
	v := c.Program()
	v.MaxSteps = prior.LongestSchedule
	v.Idle = func(preset string, task manifest.TaskSpec, name, parameter string) (reason string, restated bool) {
		m, err := c.Methods.Find(name)
		if err != nil {
			return "", false // the name is checked elsewhere
		}
		settings, err := c.Methods.Resolve(method.Request{Method: name, Preset: preset, Task: task.Name, Values: task.Solver}, longest)
		if err != nil {
			return "", false // Settle reports it
		}
		info := m.Info()
		if reason = settings.Lacks(info, parameter); reason != "" {
			reason = fmt.Sprintf("has no effect on %s %s", task.Name, reason)
		}
		return reason, task.Solver[parameter] == info.Unset(parameter, preset, task.Name)
	}
	return v
}

// largestImage stands for the images of a campaign, whose sizes are unknown before its rows are read: settings that no plan
// admits for it suit no image.
var largestImage = operator.Shape{Channels: 3, Height: 1 << 14, Width: 1 << 14}

// Check validates a campaign against its prior as well: the number of steps, time indices, the plan of each method, and the
// methods, which work either on pixels or on latents.
func (c Catalogue) Check(s *manifest.Spec, p *prior.Description) error {
	return c.check(c.Program(), s, p)
}

// Admit is Check for a new campaign, see Admission.
func (c Catalogue) Admit(s *manifest.Spec, p *prior.Description) error {
	return c.check(c.Admission(), s, p)
}

func (c Catalogue) check(v manifest.Program, s *manifest.Spec, p *prior.Description) error {
	v.Prior, v.MaxSteps = &p.Card, p.Schedule.Steps()
	v.Settle = func(preset string, task manifest.TaskSpec, name string) error {
		settings, err := c.Resolve(preset, task, name, p.Schedule)
		if err != nil {
			return err
		}
		m, err := c.Methods.Find(name)
		if err != nil {
			return err
		}
		if err := m.Info().Admits(settings, &p.Card); err != nil {
			return err
		}
		if _, err := method.Planned(m, settings, p.Schedule, largestImage); err != nil {
			return fmt.Errorf("method %s: %w", name, err)
		}
		own := (s.Dataset.Kernel != "" || task.Kernel != "") && c.Operators.Known(task.Name).Given != nil
		d, err := c.operator(task, own)
		if err != nil {
			return err
		}
		return c.Methods.Serves(name, d, &p.Card)
	}
	return s.Validate(v)
}

// operator returns the definition of a task's operator, or, with own, that of items with a kernel of their own: the parameters of the task
// must be its parameters.
func (c Catalogue) operator(task manifest.TaskSpec, own bool) (operator.Definition, error) {
	d, err := c.Operators.Definition(task.Name, own)
	if err != nil {
		return operator.Definition{Name: task.Name, Own: c.Files[task.Operator]}, nil //nolint:nilerr // the name is checked elsewhere
	}
	if own {
		if _, err := d.Parameters.Complete(task.Params); err != nil {
			return d, fmt.Errorf("task %s with a kernel: %w", task.Name, err)
		}
	}
	return d, nil
}

// Resolve returns the settings of a method for a task: those of the preset, replaced by those of the task. The error wraps
// method.ErrSetting.
func (c Catalogue) Resolve(preset string, task manifest.TaskSpec, name string, schedule prior.Schedule) (method.Settings, error) {
	var sigma *float64 // unknown before the measurement is read
	if task.Sigma != nil && *task.Sigma != manifest.SigmaAuto {
		sigma = (*float64)(task.Sigma)
	}
	if sigma != nil && task.Photons != nil {
		sigma = new(operator.Noise{Sigma: *sigma, Photons: *task.Photons}.Level())
	}
	return c.Methods.Resolve(method.Request{
		Method: name, Preset: preset, Task: task.Name, Sigma: sigma, Steps: task.Steps, Values: task.Solver,
	}, schedule.Steps())
}

// resolver returns Resolve in the form that manifest needs. It also reports the errors of the worker that follow from the
// settings alone, such as an operator that does not suit the image.
func (c Catalogue) resolver(preset string, p *prior.Description) manifest.Resolver {
	return func(task manifest.TaskSpec, own bool, name string, width, height int) (json.RawMessage, map[string]float64, error) {
		settings, err := c.Resolve(preset, task, name, p.Schedule)
		if err != nil {
			return nil, nil, err
		}
		operators := c.Operators
		if own {
			d, err := c.operator(task, own)
			if err != nil {
				return nil, nil, err
			}
			if err := c.Methods.Serves(name, d, &p.Card); err != nil {
				return nil, nil, err
			}
			operators = operator.Set{d}
		}
		op, err := operators.New(task.Name, task.Params, operator.Shape{Channels: p.Card.Channels, Height: height, Width: width})
		if err != nil {
			return nil, nil, err
		}
		raw, err := json.Marshal(settings)
		return raw, op.Params, err
	}
}

// resolved is the answer of a resolver.
type resolved struct {
	solver json.RawMessage
	params map[string]float64
	err    error
}

// maxResolved bounds the answers in memory. A dataset with more different settings clears them.
const maxResolved = 1 << 12

// memoize calls a resolver once for each task, method and size. Rows rarely differ in them, and making an operator takes
// longer than the rest of sharding an item.
func memoize(resolve manifest.Resolver) manifest.Resolver {
	known := map[string]resolved{}
	return func(task manifest.TaskSpec, own bool, method string, width, height int) (json.RawMessage, map[string]float64, error) {
		plain := task
		plain.Methods, plain.Runs = nil, 0 // they change neither solver nor operator
		key, err := json.Marshal([]any{plain, own, method, width, height})
		if err != nil {
			return nil, nil, err
		}
		r, ok := known[string(key)]
		if !ok {
			if len(known) == maxResolved {
				clear(known)
			}
			r.solver, r.params, r.err = resolve(task, own, method, width, height)
			known[string(key)] = r
		}
		return r.solver, r.params, r.err
	}
}

package shard

import (
	"encoding/json"

	"ddiff/manifest"
	"ddiff/restore/operator"
	"ddiff/restore/prior"
	"ddiff/restore/solver"
)

// Vocabulary is what campaign files may name.
func Vocabulary() manifest.Vocabulary {
	v := manifest.Vocabulary{Tasks: map[string][]string{}, Presets: solver.Presets()}
	for _, t := range operator.Builtin() {
		v.Tasks[t.Name] = t.Parameters.Names()
	}
	for _, m := range solver.Methods() {
		v.Methods = append(v.Methods, string(m))
	}
	return v
}

// Resolve settles the solver's configuration for a task and method: the preset, the
// overrides on top of it, the number of steps.
func Resolve(preset string, task manifest.TaskSpec, method string) (solver.Config, error) {
	c, err := solver.Preset(preset, task.Name)
	if err != nil {
		return c, err
	}
	c.Method = solver.Method(method)
	if task.Steps != 0 {
		c.Steps = task.Steps
	}
	o := task.Solver
	set(&c.Gamma0, o.Gamma0)
	set(&c.A, o.A)
	set(&c.B, o.B)
	set(&c.TGamma, o.TGamma)
	set(&c.T0, o.T0)
	if o.SigmaRule != "" {
		c.SigmaRule = o.SigmaRule
	}
	if o.Gradient != "" {
		c.Gradient = o.Gradient
	}
	return c, c.Validate()
}

func set[T any](field, override *T) {
	if override != nil {
		*field = *override
	}
}

// resolver is Resolve as the manifest asks for it. It also refuses what the worker would
// refuse: an operator that does not suit the image, more steps than the prior has.
func resolver(preset string, p *prior.Prior) manifest.Resolver {
	return func(task manifest.TaskSpec, method string, width, height int) (json.RawMessage, map[string]float64, error) {
		cfg, err := Resolve(preset, task, method)
		if err != nil {
			return nil, nil, err
		}
		if _, err := solver.Respace(p.Schedule.Steps(), cfg.Steps); err != nil {
			return nil, nil, err
		}
		op, err := operator.Builtin().New(task.Name, task.Params, operator.Shape{Channels: p.Card.Channels, Height: height, Width: width})
		if err != nil {
			return nil, nil, err
		}
		raw, err := json.Marshal(cfg)
		return raw, op.Params, err
	}
}

// remembered is what a resolver said.
type remembered struct {
	solver json.RawMessage
	params map[string]float64
	err    error
}

// maxRemembered bounds the memory of a resolver; a dataset with more different settings
// begins anew.
const maxRemembered = 1 << 12

// remember asks a resolver once for each task, method and size: rows rarely differ in them,
// and making an operator takes longer than all else that sharding does with an item.
func remember(resolve manifest.Resolver) manifest.Resolver {
	known := map[string]remembered{}
	return func(task manifest.TaskSpec, method string, width, height int) (json.RawMessage, map[string]float64, error) {
		plain := task
		plain.Sigma = nil // the noise level changes neither solver nor operator
		key, err := json.Marshal([]any{plain, method, width, height})
		if err != nil {
			return nil, nil, err
		}
		r, ok := known[string(key)]
		if !ok {
			if len(known) == maxRemembered {
				clear(known)
			}
			r.solver, r.params, r.err = resolve(task, method, width, height)
			known[string(key)] = r
		}
		return r.solver, r.params, r.err
	}
}

package campaign

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ddiff/coordinator/shard"
	"ddiff/manifest"
)

// setSweeps applies the flags --set NAME=VALUE[,VALUE...]: each task that has NAME becomes one task per value. NAME is
// sigma, photons, steps, a parameter of a task (PARAM or TASK.PARAM), or a setting of a method (SETTING or solver.SETTING).
func setSweeps(s *manifest.Spec, texts []string, c shard.Catalogue) error {
	for _, text := range texts {
		name, list, err := assignment("--set", text)
		if err != nil {
			return err
		}
		values := strings.Split(list, ",")
		for i, v := range values {
			values[i] = strings.TrimSpace(v)
			if values[i] == "" || slices.Contains(values[:i], values[i]) {
				return fmt.Errorf("--set %s: a value is empty or repeated", text)
			}
		}
		set, err := sweepOf(s, text, name, c)
		if err != nil {
			return err
		}
		if err := expandTasks(s, text, values, set); err != nil {
			return err
		}
	}
	return nil
}

// setter sets a value in a task. It returns the field for errors, or "" if the task does not have it.
type setter func(t *manifest.TaskSpec, value string) (field string, err error)

// expandTasks replaces each task that has the field by one per value.
func expandTasks(s *manifest.Spec, text string, values []string, set setter) error {
	var out []manifest.TaskSpec
	fields := map[int]string{}
	for _, t := range s.Tasks {
		for _, v := range values {
			next := t
			next.Params, next.Solver = maps.Clone(t.Params), maps.Clone(t.Solver)
			field, err := set(&next, v)
			if err != nil {
				return fmt.Errorf("--set %s: %w", text, err)
			}
			if field != "" {
				fields[len(out)] = field
			}
			out = append(out, next)
			if field == "" {
				break
			}
		}
		if len(out) > manifest.MaxCells {
			return fmt.Errorf("--set %s: the lists give more than %d tasks", text, manifest.MaxCells)
		}
	}
	s.Tasks = out
	for i, field := range fields {
		s.Override(fmt.Sprintf("tasks[%d].%s", i, field), "--set "+text)
	}
	return nil
}

// sweepOf finds the field that a name stands for.
func sweepOf(s *manifest.Spec, text, name string, c shard.Catalogue) (setter, error) {
	switch name {
	case "sigma":
		return func(t *manifest.TaskSpec, value string) (string, error) {
			x, err := manifest.ParseSigma(value)
			t.Sigma = &x
			return "sigma", err
		}, nil
	case "photons":
		return func(t *manifest.TaskSpec, value string) (string, error) {
			x, err := number(value)
			t.Photons = &x
			return "photons", err
		}, nil
	case "steps":
		return func(t *manifest.TaskSpec, value string) (_ string, err error) {
			if t.Steps, err = strconv.Atoi(value); err != nil {
				err = fmt.Errorf("%q is not an integer", value)
			}
			return "steps", err
		}, nil
	}
	vocabulary := c.Vocabulary()
	task, param, qualified := strings.Cut(name, ".")
	if !qualified {
		task, param = "", name
	}
	owns := func(t manifest.TaskSpec) bool {
		return slices.Contains(vocabulary.OperatorParameters(t).Names(), param) && (!qualified || t.Name == task)
	}
	setting := task == "" || task == "solver"
	isSetting := setting && slices.ContainsFunc(s.Methods, func(m string) bool { return slices.Contains(vocabulary.Parameters[m].Names(), param) })
	isParam := slices.ContainsFunc(s.Tasks, owns)
	switch {
	case isParam && isSetting:
		return nil, fmt.Errorf("--set %s: %s is a parameter of a task and a setting of a method; write TASK.%s or solver.%s", text, param, param, param)
	case isParam:
		return func(t *manifest.TaskSpec, value string) (string, error) {
			if !owns(*t) {
				return "", nil
			}
			if t.Params == nil {
				t.Params = map[string]float64{}
			}
			var err error
			t.Params[param], err = number(value)
			return "params." + param, err
		}, nil
	case isSetting:
		return func(t *manifest.TaskSpec, value string) (string, error) {
			v := manifest.Value{Word: value}
			if x, err := strconv.ParseFloat(value, 64); err == nil {
				v = manifest.Value{Number: x}
			}
			t.Solver = manifest.Values{param: v}.Or(t.Solver)
			return "solver." + param, nil
		}, nil
	}
	all := []string{"sigma", "photons", "steps"}
	for _, t := range s.Tasks {
		all = append(all, vocabulary.OperatorParameters(t).Names()...)
	}
	for _, m := range s.Methods {
		all = append(all, vocabulary.Parameters[m].Names()...)
	}
	return nil, fmt.Errorf("--set %s: %w; see: ddiff tasks, ddiff methods", text, manifest.Unknown("parameter of the campaign's tasks and methods", param, all))
}

func number(value string) (float64, error) {
	x, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", value)
	}
	return x, nil
}

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

// AllTasks is the value of --task that names every task but those that need a file.
const AllTasks = "all"

// taskSpecs are the tasks that --task names.
func taskSpecs(names []string, c shard.Catalogue) []manifest.TaskSpec {
	if slices.Contains(names, AllTasks) {
		required := c.Vocabulary().Required
		named := names
		names = slices.DeleteFunc(c.Operators.Names(), func(n string) bool { return required[n] && !slices.Contains(named, n) })
	}
	var specs []manifest.TaskSpec
	for _, n := range names {
		specs = append(specs, manifest.TaskSpec{Name: n})
	}
	return specs
}

// setParams sets the operator parameters of --param in the campaign. A name without a task must belong to one task of
// the campaign alone.
func setParams(s *manifest.Spec, params []string, c shard.Catalogue) error {
	known := c.Vocabulary()
	for _, text := range params {
		name, value, err := assignment("--param", text)
		if err != nil {
			return err
		}
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return fmt.Errorf("--param %s: %q is not a number; write NAME=NUMBER", text, value)
		}
		task, param, qualified := strings.Cut(name, ".")
		if !qualified {
			task, param = "", name
		}
		var tasks []string
		for _, t := range s.Tasks {
			if !slices.Contains(tasks, t.Name) && (t.Name == task || !qualified && slices.Contains(known.OperatorParameters(t).Names(), param)) {
				tasks = append(tasks, t.Name)
			}
		}
		switch {
		case len(tasks) == 0 && qualified:
			return fmt.Errorf("--param %s: the campaign has no task %q; it has %s", text, task, taskNames(s))
		case len(tasks) == 0:
			var all []string
			for _, t := range s.Tasks {
				all = append(all, known.OperatorParameters(t).Names()...)
			}
			return fmt.Errorf("--param %s: %w; see: ddiff tasks", text, manifest.Unknown("parameter of the campaign's tasks", param, all))
		case len(tasks) > 1:
			return fmt.Errorf("--param %s: the tasks %s have this parameter; write %s.%s=%s", text, strings.Join(tasks, " and "), tasks[0], param, value)
		}
		for i := range s.Tasks {
			if t := &s.Tasks[i]; t.Name == tasks[0] {
				if t.Params == nil {
					t.Params = map[string]float64{}
				}
				t.Params[param] = number
				s.Override(fmt.Sprintf("tasks[%d].params.%s", i, param), "--param "+text)
			}
		}
	}
	return nil
}

func taskNames(s *manifest.Spec) string {
	var names []string
	for _, t := range s.Tasks {
		names = append(names, t.Name)
	}
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), ", ")
}

// setSolver sets the solver parameters of --solver, for the campaign and over those of its tasks.
func setSolver(s *manifest.Spec, params []string) error {
	for _, text := range params {
		name, value, err := assignment("--solver", text)
		if err != nil {
			return err
		}
		s.Solver = manifest.Values{name: SolverValue(value)}.Or(s.Solver)
		s.Override("solver."+name, "--solver "+text)
		for i := range s.Tasks {
			delete(s.Tasks[i].Solver, name)
		}
	}
	return nil
}

// SolverValue reads the value of a setting: a number, or else a word.
func SolverValue(text string) manifest.Value {
	if x, err := strconv.ParseFloat(text, 64); err == nil {
		return manifest.Value{Number: x}
	}
	return manifest.Value{Word: text}
}

// assignment reads NAME=VALUE.
func assignment(flag, text string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" || value == "" {
		return "", "", fmt.Errorf("%s: %q is not NAME=VALUE", flag, text)
	}
	return name, value, nil
}

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
			t.Solver = manifest.Values{param: SolverValue(value)}.Or(t.Solver)
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

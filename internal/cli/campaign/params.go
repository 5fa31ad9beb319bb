package campaign

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/parameter"
)

// AllTasks is the value of --task that names every task but those that need a file.
const AllTasks = "all"

// namedTasks are the tasks that --task names.
func namedTasks(names []string, c manifest.Catalogue) []item.Task {
	if slices.Contains(names, AllTasks) {
		named := names
		names = slices.DeleteFunc(c.Operators.Names(), func(n string) bool { return c.Operators.Known(n).Required && !slices.Contains(named, n) })
	}
	var tasks []item.Task
	for _, n := range names {
		tasks = append(tasks, item.Task{Name: n})
	}
	return tasks
}

// setParams sets the operator parameters of --param in the tasks of the campaign that have them.
func setParams(s *manifest.Spec, params []string, c manifest.Catalogue) error {
	for _, text := range params {
		name, value, err := assignment("--param", text)
		if err != nil {
			return err
		}
		set := parameterOf(s, name, c)
		if set == nil {
			unknown := manifest.Unknown("parameter of the campaign's tasks", name, operatorParameters(s, name, c))
			return fmt.Errorf("--param %s: %w; see: ddiff tasks", text, unknown)
		}
		if err := expandTasks(s, "--param "+text, []string{value}, set); err != nil {
			return err
		}
	}
	return nil
}

// setSolver sets the solver parameters of --solver, for the campaign and over those of its tasks.
func setSolver(s *manifest.Spec, params []string) error {
	for _, text := range params {
		name, value, err := assignment("--solver", text)
		if err != nil {
			return err
		}
		s.Solver = parameter.Values{name: SolverValue(value)}.Or(s.Solver)
		s.Override("solver."+name, "--solver "+text)
		for i := range s.Tasks {
			delete(s.Tasks[i].Solver, name)
		}
	}
	return nil
}

// SolverValue reads the value of a setting: a number, or else a word.
func SolverValue(text string) parameter.Value {
	if x, err := strconv.ParseFloat(text, 64); err == nil {
		return parameter.Value{Number: x}
	}
	return parameter.Word(text)
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
func setSweeps(s *manifest.Spec, texts []string, c manifest.Catalogue) error {
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
		if err := expandTasks(s, "--set "+text, values, set); err != nil {
			return err
		}
	}
	return nil
}

// setter sets a value in a task. It returns the field for errors, or "" if the task does not have it.
type setter func(t *item.Task, value string) (field string, err error)

// expandTasks replaces each task that has the field by one per value. The flag is named in errors.
func expandTasks(s *manifest.Spec, flag string, values []string, set setter) error {
	var out []item.Task
	fields := map[int]string{}
	for _, t := range s.Tasks {
		for _, v := range values {
			next := t
			next.Params, next.Solver = maps.Clone(t.Params), maps.Clone(t.Solver)
			field, err := set(&next, v)
			if err != nil {
				return fmt.Errorf("%s: %w", flag, err)
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
			return fmt.Errorf("%s: the lists give more than %d tasks", flag, manifest.MaxCells)
		}
	}
	s.Tasks = out
	for i, field := range fields {
		s.Override(fmt.Sprintf("tasks[%d].%s", i, field), flag)
	}
	return nil
}

// sweepOf finds the field that a name stands for.
func sweepOf(s *manifest.Spec, text, name string, c manifest.Catalogue) (setter, error) {
	switch name {
	case "sigma":
		return func(t *item.Task, value string) (string, error) {
			x, err := manifest.ParseSigma(value)
			t.Sigma = &x
			return "sigma", err
		}, nil
	case "photons":
		return func(t *item.Task, value string) (string, error) {
			x, err := number(value)
			t.Photons = &x
			return "photons", err
		}, nil
	case "steps":
		return func(t *item.Task, value string) (_ string, err error) {
			if t.Steps, err = strconv.Atoi(value); err != nil {
				err = fmt.Errorf("%q is not an integer", value)
			}
			return "steps", err
		}, nil
	}
	param := parameterOf(s, name, c)
	setting := strings.TrimPrefix(name, "solver.")
	isSetting := slices.ContainsFunc(s.Methods, func(m string) bool { return slices.Contains(c.MethodParameters(m).Names(), setting) })
	switch {
	case param != nil && isSetting:
		return nil, fmt.Errorf("--set %s: %s is a parameter of a task and a setting of a method; write TASK.%s or solver.%s", text, name, name, name)
	case param != nil:
		return param, nil
	case isSetting:
		return func(t *item.Task, value string) (string, error) {
			t.Solver = parameter.Values{setting: SolverValue(value)}.Or(t.Solver)
			return "solver." + setting, nil
		}, nil
	}
	all := append(operatorParameters(s, name, c), "sigma", "photons", "steps")
	for _, m := range s.Methods {
		all = append(all, qualify(name, "solver", c.MethodParameters(m).Names())...)
	}
	unknown := manifest.Unknown("parameter of the campaign's tasks and methods", name, all)
	return nil, fmt.Errorf("--set %s: %w; see: ddiff tasks, ddiff methods", text, unknown)
}

// parameterOf returns the setter of the operator parameter PARAM or TASK.PARAM, nil if no task has it.
func parameterOf(s *manifest.Spec, name string, c manifest.Catalogue) setter {
	task, param, qualified := strings.Cut(name, ".")
	if !qualified {
		param = name
	}
	owns := func(t item.Task) bool {
		return slices.Contains(c.OperatorParameters(t).Names(), param) && (!qualified || t.Name == task)
	}
	if !slices.ContainsFunc(s.Tasks, owns) {
		return nil
	}
	return func(t *item.Task, value string) (string, error) {
		if !owns(*t) {
			return "", nil
		}
		if t.Params == nil {
			t.Params = map[string]float64{}
		}
		var err error
		t.Params[param], err = number(value)
		return "params." + param, err
	}
}

// operatorParameters are the names of the parameters of all tasks, with the task if that of the unknown name has one.
func operatorParameters(s *manifest.Spec, unknown string, c manifest.Catalogue) (names []string) {
	for _, t := range s.Tasks {
		names = append(names, qualify(unknown, t.Name, c.OperatorParameters(t).Names())...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// qualify returns names with their owner if the unknown name has one.
func qualify(unknown, owner string, names []string) (out []string) {
	if !strings.Contains(unknown, ".") {
		return names
	}
	for _, n := range names {
		out = append(out, owner+"."+n)
	}
	return out
}

func number(value string) (float64, error) {
	x, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", value)
	}
	return x, nil
}

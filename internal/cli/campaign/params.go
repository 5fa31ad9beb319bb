package campaign

import (
	"fmt"
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
		v := manifest.Value{Word: value}
		if x, err := strconv.ParseFloat(value, 64); err == nil {
			v = manifest.Value{Number: x}
		}
		s.Solver = manifest.Values{name: v}.Or(s.Solver)
		s.Override("solver."+name, "--solver "+text)
		for i := range s.Tasks {
			delete(s.Tasks[i].Solver, name)
		}
	}
	return nil
}

// assignment reads NAME=VALUE.
func assignment(flag, text string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" || value == "" {
		return "", "", fmt.Errorf("%s: %q is not NAME=VALUE", flag, text)
	}
	return name, value, nil
}

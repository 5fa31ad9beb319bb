package manifest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ddiff/restore/item"
	"ddiff/restore/parameter"
)

// RestrictMethods replaces the methods of a campaign. A task with methods of its own keeps those among the new ones; without
// any, it is left out, also for rows that name it. Where the new methods are a part of the present ones, settings that only the others have are left out, too.
//
// The error is a [FieldError]: no method is given, one is unknown, also of a task, or no task is left.
func (s *Spec) RestrictMethods(methods []string, p Catalogue) error {
	known := p.Methods.Names()
	if len(methods) == 0 {
		return s.problem("methods", errors.New("is empty; name at least one method"))
	}
	for i, m := range methods {
		if !slices.Contains(known, m) {
			return s.problem(fmt.Sprintf("methods[%d]", i), Unknown("method", m, known))
		}
	}
	var tasks []item.Task
	var listed, left []string // methods in the tasks, names of tasks without a method
	moved := map[string]string{}
	for i, t := range s.Tasks {
		before, after := s.methodsOf(t), methods
		for k, m := range t.Methods {
			if !slices.Contains(known, m) { // the task may be left out
				return s.problem(fmt.Sprintf("tasks[%d].methods[%d]", i, k), Unknown("method", m, known))
			}
		}
		if len(t.Methods) > 0 {
			listed = append(listed, t.Methods...)
			after = slices.DeleteFunc(slices.Clone(t.Methods), func(m string) bool { return !slices.Contains(methods, m) })
			t.Methods = after
		}
		if len(after) == 0 {
			left = append(left, t.Name)
			continue
		}
		t.Solver = p.settingsOf(t.Solver, before, after)
		moved[taskField(i)] = taskField(len(tasks))
		tasks = append(tasks, t)
	}
	if len(tasks) == 0 && len(listed) > 0 {
		slices.Sort(listed)
		return s.problem("methods", fmt.Errorf("no task of the campaign has the method %s; the tasks have %s",
			strings.Join(methods, " or "), strings.Join(slices.Compact(listed), ", ")))
	}
	s.Solver = p.settingsOf(s.Solver, s.Methods, methods)
	s.Tasks, s.Methods = tasks, methods
	s.leaveOut(left)
	s.lines, s.overrides = movedFields(s.lines, moved), movedFields(s.overrides, moved)
	return nil
}

// leaveOut adds to LeftOut the names that no task has any more.
func (s *Spec) leaveOut(names []string) {
	for _, name := range names {
		if !s.hasTask(name) && !slices.Contains(s.LeftOut, name) {
			s.LeftOut = append(s.LeftOut, name)
		}
	}
}

func (s *Spec) hasTask(name string) bool {
	return slices.ContainsFunc(s.Tasks, func(t item.Task) bool { return t.Name == name })
}

// ChooseTasks replaces the tasks of a campaign. Those that it has under the name of a chosen one stay, with their settings; the chosen
// ones that it has not are added as they are. Rows of a list that name another one of its tasks have no items. By is the flag that errors about the added ones name, such as "--task". The error is a
// [FieldError] of a name that is chosen twice.
func (s *Spec) ChooseTasks(chosen []item.Task, by string) error {
	var tasks []item.Task
	names, added, moved := map[string]bool{}, []int{}, map[string]string{}
	for _, c := range chosen {
		if names[c.Name] {
			return &FieldError{Field: by, Err: fmt.Errorf("task %q is repeated; remove one", c.Name)}
		}
		names[c.Name] = true
		size := len(tasks)
		for i, t := range s.Tasks {
			if t.Name == c.Name {
				moved[taskField(i)] = taskField(len(tasks))
				tasks = append(tasks, t)
			}
		}
		if len(tasks) == size {
			added = append(added, size)
			tasks = append(tasks, c)
		}
	}
	var before []string
	for _, t := range s.Tasks {
		before = append(before, t.Name)
	}
	s.Tasks = tasks
	s.LeftOut = slices.DeleteFunc(s.LeftOut, s.hasTask)
	s.leaveOut(before)
	s.lines, s.overrides = movedFields(s.lines, moved), movedFields(s.overrides, moved)
	if len(moved) == 0 {
		s.Override("tasks", by)
	}
	for _, i := range added {
		s.Override(taskField(i), by)
	}
	return nil
}

// taskField is the field of a task in messages.
func taskField(i int) string { return fmt.Sprintf("tasks[%d]", i) }

// movedFields gives the fields of the tasks, with their lines or flags, their new places. Those of a task without one are left out.
func movedFields[V any](fields map[string]V, moved map[string]string) map[string]V {
	out := map[string]V{}
	for field, v := range fields {
		task, rest, inTask := strings.Cut(field, "]")
		if !inTask || !strings.HasPrefix(task, "tasks[") {
			out[field] = v
		} else if at, ok := moved[task+"]"]; ok {
			out[at+rest] = v
		}
	}
	return out
}

// settingsOf returns the solver settings of a part of some methods: those that only the other methods have are left out. Methods that are
// no part have all settings.
func (c Catalogue) settingsOf(values parameter.Values, methods, part []string) parameter.Values {
	if slices.ContainsFunc(part, func(m string) bool { return !slices.Contains(methods, m) }) {
		return values
	}
	out := maps.Clone(values)
	maps.DeleteFunc(out, func(name string, _ parameter.Value) bool {
		has := func(m string) bool { return slices.Contains(c.MethodParameters(m).Names(), name) }
		return slices.ContainsFunc(methods, has) && !slices.ContainsFunc(part, has)
	})
	return out
}

// leftOut reports each name of left_out that tasks has, too.
func (c *checker) leftOut() {
	for i, name := range c.spec.LeftOut {
		if c.spec.hasTask(name) {
			c.add(fmt.Sprintf("left_out[%d]", i), fmt.Errorf("%q is in tasks, too; remove one of them", name))
		}
	}
}

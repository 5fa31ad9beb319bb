package manifest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// RestrictMethods replaces the methods of a campaign. A task with methods of its own keeps those among the new ones; without
// any, it is left out, also for rows that name it. Where the new methods are a part of the present ones, settings that only the others have are left out, too.
//
// The error is a [FieldError]: no method is given, one is unknown, also of a task, or no task is left.
func (s *Spec) RestrictMethods(methods []string, v Vocabulary) error {
	if len(methods) == 0 {
		return s.problem("methods", errors.New("is empty; name at least one method"))
	}
	for i, m := range methods {
		if !slices.Contains(v.Methods, m) {
			return s.problem(fmt.Sprintf("methods[%d]", i), unknown("method", m, v.Methods))
		}
	}
	var tasks []TaskSpec
	var listed, left []string // methods in the tasks, names of tasks without a method
	moved := map[string]string{}
	for i, t := range s.Tasks {
		before, after := s.methodsOf(t), methods
		for k, m := range t.Methods {
			if !slices.Contains(v.Methods, m) { // the task may be left out
				return s.problem(fmt.Sprintf("tasks[%d].methods[%d]", i, k), unknown("method", m, v.Methods))
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
		t.Solver = v.settingsOf(t.Solver, before, after)
		moved[fmt.Sprintf("tasks[%d]", i)] = fmt.Sprintf("tasks[%d]", len(tasks))
		tasks = append(tasks, t)
	}
	if len(tasks) == 0 && len(listed) > 0 {
		slices.Sort(listed)
		return s.problem("methods", fmt.Errorf("no task of the campaign has the method %s; the tasks have %s",
			strings.Join(methods, " or "), strings.Join(slices.Compact(listed), ", ")))
	}
	s.Solver = v.settingsOf(s.Solver, s.Methods, methods)
	s.Tasks, s.Methods = tasks, methods
	for _, name := range left {
		if !slices.ContainsFunc(tasks, func(t TaskSpec) bool { return t.Name == name }) && !slices.Contains(s.LeftOut, name) {
			s.LeftOut = append(s.LeftOut, name)
		}
	}
	lines := map[string]int{}
	for field, line := range s.lines {
		task, rest, inTask := strings.Cut(field, "]")
		if !inTask || !strings.HasPrefix(task, "tasks[") {
			lines[field] = line
		} else if at, ok := moved[task+"]"]; ok {
			lines[at+rest] = line
		}
	}
	s.lines = lines
	return nil
}

// settingsOf returns the solver settings of a part of some methods: those that only the other methods have are left out. Methods that are
// no part have all settings.
func (v Vocabulary) settingsOf(values Values, methods, part []string) Values {
	if slices.ContainsFunc(part, func(m string) bool { return !slices.Contains(methods, m) }) {
		return values
	}
	out := maps.Clone(values)
	maps.DeleteFunc(out, func(name string, _ Value) bool {
		has := func(m string) bool {
			return slices.ContainsFunc(v.Parameters[m], func(p Parameter) bool { return p.Name == name })
		}
		return slices.ContainsFunc(methods, has) && !slices.ContainsFunc(part, has)
	})
	return out
}

// checkLeftOut returns an error for each name of left_out that tasks has, too.
func (s *Spec) checkLeftOut() (out []*FieldError) {
	for i, name := range s.LeftOut {
		if slices.ContainsFunc(s.Tasks, func(t TaskSpec) bool { return t.Name == name }) {
			out = append(out, s.problem(fmt.Sprintf("left_out[%d]", i), fmt.Errorf("%q is in tasks, too; remove one of them", name)))
		}
	}
	return out
}

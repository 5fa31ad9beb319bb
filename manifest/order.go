package manifest

import (
	"cmp"
	"slices"
)

// ItemsPerRow returns the number of manifest entries of a row, readable or not: the runs of its
// tasks × methods.
func ItemsPerRow(row Row, spec *Spec) int {
	name, found, solutions := row.Overrides.Task, false, 0
	for i := range spec.Tasks {
		if t := &spec.Tasks[i]; name == "" || t.Name == name {
			found = true
			solutions += len(spec.methodsOf(*t)) * spec.Effective(*t).Runs
		}
	}
	if name != "" && !found && !slices.Contains(spec.LeftOut, name) {
		solutions = len(spec.Methods) * spec.Runs
	}
	return solutions
}

// methodsOf returns the methods that solve a task, in the order of the campaign.
func (s *Spec) methodsOf(t TaskSpec) []string {
	if len(t.Methods) == 0 {
		return s.Methods
	}
	return slices.DeleteFunc(slices.Clone(s.Methods), func(m string) bool { return !slices.Contains(t.Methods, m) })
}

// SortTaskMajor sorts items so that they fill batches: by task and method, then rows and runs in manifest order. Tasks
// are in the order of the spec, followed by tasks that only rows name. Index keeps the position in the manifest.
func SortTaskMajor(items []Item, spec *Spec) {
	taskRank := map[string]int{}
	for i, t := range slices.Backward(spec.Tasks) {
		taskRank[t.Name] = i - len(spec.Tasks)
	}
	slices.SortStableFunc(items, func(a, b Item) int {
		return cmp.Or(
			cmp.Compare(taskRank[a.Task], taskRank[b.Task]),
			cmp.Compare(a.Task, b.Task),
			cmp.Compare(slices.Index(spec.Methods, a.Method), slices.Index(spec.Methods, b.Method)),
			cmp.Compare(a.Index, b.Index),
		)
	})
}

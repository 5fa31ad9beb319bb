package manifest

import (
	"cmp"
	"slices"
)

// ItemsPerRow returns the number of manifest entries of a row, readable or not: tasks × methods × runs.
func ItemsPerRow(row Row, spec *Spec) int {
	tasks := len(spec.Tasks)
	if name := row.Overrides.Task; name != "" {
		tasks = 0
		for _, t := range spec.Tasks {
			if t.Name == name {
				tasks++
			}
		}
		tasks = max(tasks, 1)
	}
	return tasks * len(spec.Methods) * spec.Runs
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

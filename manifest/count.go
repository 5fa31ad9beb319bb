package manifest

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
)

// ItemsPerRow is the number of manifest entries of a row, whether it can be read or not:
// its tasks × methods × runs.
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

// Count is the number of manifest entries of a whole dataset. Its error is that of [Rows].
func Count(rows iter.Seq2[Row, error], spec *Spec) (int, error) {
	n := 0
	for row, err := range rows {
		if err != nil {
			return 0, fmt.Errorf("count items: %w", err)
		}
		n += ItemsPerRow(row, spec)
	}
	return n, nil
}

// SortTaskMajor brings items into the order in which they are best run: all items of one
// task and method together, so that they fill batches; rows and runs in manifest order
// within. Tasks come in the order of the spec, those that only rows ask for last. Index
// keeps the position in the manifest.
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

package shard

import (
	"cmp"
	"slices"

	"ddiff/manifest"
	"ddiff/restore/item"
)

// SortTaskMajor sorts items so that they fill batches: by task and method, then rows and runs in manifest order. Tasks
// are in the order of the spec, followed by tasks that only rows name. Index keeps the position in the manifest.
func SortTaskMajor(items []item.Item, spec *manifest.Spec) {
	taskRank := map[string]int{}
	for i, t := range slices.Backward(spec.Tasks) {
		taskRank[t.Name] = i - len(spec.Tasks)
	}
	slices.SortStableFunc(items, func(a, b item.Item) int {
		return cmp.Or(
			cmp.Compare(taskRank[a.Task], taskRank[b.Task]),
			cmp.Compare(a.Task, b.Task),
			cmp.Compare(slices.Index(spec.Methods, a.Method), slices.Index(spec.Methods, b.Method)),
			cmp.Compare(a.Index, b.Index),
		)
	})
}

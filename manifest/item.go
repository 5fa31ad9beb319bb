package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"ddiff/restore/item"
)

// FailuresFolder is the prefix of the lists of failed and dead items: failures/CAMPAIGN/NNNN.jsonl, one [item.Result]
// per line. The report of a campaign replaces its lists.
const FailuresFolder = "failures/"

// EncodeItem returns the payload of a queue message: the JSON of an item with the field "schema".
//
// Versions of ddiff may run one campaign together. A field that changes the result of an item is part of its identity,
// so that a worker that does not know the field finds another identity ([item.Item.CheckID]) and refuses the item. All other
// fields are optional: a worker ignores those that it does not know.
func EncodeItem(encoded []byte) []byte {
	return append(fmt.Appendf(nil, `{"schema":%d,`, item.SchemaVersion), encoded[1:]...)
}

// Decode decodes the payload of a queue message. It returns item.ErrNewer for a higher schema.
func Decode[T item.Item | Preflight](data []byte) (payload T, err error) {
	if err = item.CheckSchema(data); err == nil {
		err = json.Unmarshal(data, &payload)
	}
	return payload, err
}

// SortTaskMajor sorts items so that they fill batches: by task and method, then rows and runs in manifest order. Tasks
// are in the order of the spec, followed by tasks that only rows name. Index keeps the position in the manifest.
func SortTaskMajor(items []item.Item, spec *Spec) {
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

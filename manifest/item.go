package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"ddiff/restore/item"
)

//nolint:revive // The comments are those of package item, which restorations without a campaign use as well.
type (
	Item       = item.Item
	Source     = item.Source
	Picture    = item.Picture
	ValueRange = item.ValueRange
	Fit        = item.Fit
	Result     = item.Result
	Event      = item.Event
	Outcome    = item.Outcome
	Metrics    = item.Metrics
	Warning    = item.Warning
	Runtime    = item.Runtime
	Cost       = item.Cost
	Score      = item.Score
	Trace      = item.Trace
)

// Constants and errors of package item.
const (
	SchemaVersion = item.SchemaVersion

	FitCenterCrop = item.FitCenterCrop
	FitResize     = item.FitResize
	FitPad        = item.FitPad

	OutcomeDone   = item.OutcomeDone
	OutcomeFailed = item.OutcomeFailed
	OutcomeDead   = item.OutcomeDead

	ItemsFolder     = item.ItemsFolder
	FileResult      = item.FileResult
	FileTrace       = item.FileTrace
	FileTruth       = item.FileTruth
	FileMeasurement = item.FileMeasurement
	FileData        = item.FileData
	FileRestored    = item.FileRestored
	FileUnclipped   = item.FileUnclipped
)

// FailuresFolder is the prefix of the lists of failed and dead items: failures/CAMPAIGN/NNNN.jsonl, one [Result]
// per line. The report of a campaign replaces its lists.
const FailuresFolder = "failures/"

// ErrNewer is that of package item.
var ErrNewer = item.ErrNewer

// ItemKey is that of package item.
func ItemKey(id, file string) string { return item.Key(id, file) }

// EncodeItem returns the payload of a queue message: the JSON of an item with the field "schema".
//
// Versions of ddiff may run one campaign together. A field that changes the result of an item is part of its identity,
// so that a worker that does not know the field finds another identity ([Item.CheckID]) and refuses the item. All other
// fields are optional: a worker ignores those that it does not know. Items of versions without the field "schema" have
// schema 1.
func EncodeItem(item []byte) []byte {
	return append(fmt.Appendf(nil, `{"schema":%d,`, SchemaVersion), item[1:]...)
}

// DecodeItem decodes the payload of a queue message. It returns ErrNewer for a higher schema.
func DecodeItem(data []byte) (it Item, err error) {
	if err = item.CheckSchema(data); err == nil {
		err = json.Unmarshal(data, &it)
	}
	return it, err
}

// DecodePreflight decodes the payload of a preflight. It returns ErrNewer for a higher schema.
func DecodePreflight(data []byte) (p Preflight, err error) {
	if err = item.CheckSchema(data); err == nil {
		err = json.Unmarshal(data, &p)
	}
	return p, err
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

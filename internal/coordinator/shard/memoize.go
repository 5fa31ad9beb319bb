package shard

import (
	"encoding/json"

	"ddiff/manifest"
	"ddiff/restore/item"
)

// resolved is the answer of a resolver.
type resolved struct {
	solver json.RawMessage
	params map[string]float64
	err    error
}

// maxResolved bounds the answers in memory. A dataset with more different settings clears them.
const maxResolved = 1 << 12

// memoize calls a resolver once for each task, method and size. Rows rarely differ in them, and making an operator takes
// longer than the rest of sharding an item.
func memoize(resolve manifest.Resolver) manifest.Resolver {
	known := map[string]resolved{}
	return func(task item.Task, own bool, width, height int) (json.RawMessage, map[string]float64, error) {
		plain := task
		plain.Methods, plain.Runs = nil, 0 // they change neither solver nor operator
		key, err := json.Marshal([]any{plain, own, task.Method, width, height})
		if err != nil {
			return nil, nil, err
		}
		r, ok := known[string(key)]
		if !ok {
			if len(known) == maxResolved {
				clear(known)
			}
			r.solver, r.params, r.err = resolve(task, own, width, height)
			known[string(key)] = r
		}
		return r.solver, r.params, r.err
	}
}

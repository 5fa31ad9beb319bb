package storage

import (
	"context"
	"iter"
)

// resumable is a store that can begin a listing in its middle.
type resumable interface {
	// listAfter is List without the keys up to and including after.
	listAfter(ctx context.Context, prefix, after string) iter.Seq2[Info, error]
}

// listAfter lists the keys of any store that come after a key. A store that is not
// resumable is listed from its beginning.
func listAfter(ctx context.Context, store Store, prefix, after string) iter.Seq2[Info, error] {
	if after == "" {
		return store.List(ctx, prefix)
	}
	if r, ok := store.(resumable); ok {
		return r.listAfter(ctx, prefix, after)
	}
	return func(yield func(Info, error) bool) {
		for info, err := range store.List(ctx, prefix) {
			if err == nil && info.Key <= after {
				continue
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

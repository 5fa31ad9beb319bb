package storage

import (
	"context"
	"iter"
)

// resumable is a store that can start a listing after a key.
type resumable interface {
	// listAfter lists the keys after the given key.
	listAfter(ctx context.Context, prefix, after string) iter.Seq2[Info, error]
}

// listAfter lists the keys of any store after a key. It reads and skips the first part of a listing that is not
// resumable.
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

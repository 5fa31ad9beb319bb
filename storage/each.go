package storage

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"golang.org/x/sync/errgroup"
)

// eachParallel is the number of objects that Each reads at a time and has in memory.
const eachParallel = 16

// Each yields what read returns for the objects below a prefix, in the order of their keys. It reads several at a time. The
// last pair has the error of the listing or of read, if any.
func Each[T any](ctx context.Context, s Store, prefix string, read func(ctx context.Context, info Info) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		var infos []Info
		for info, err := range s.List(ctx, prefix) {
			if err != nil {
				yield(none, fmt.Errorf("list %s: %w", prefix, err))
				return
			}
			infos = append(infos, info)
		}
		for chunk := range slices.Chunk(infos, eachParallel) {
			values := make([]T, len(chunk))
			group, inner := errgroup.WithContext(ctx)
			for i, info := range chunk {
				group.Go(func() (err error) {
					values[i], err = read(inner, info)
					return err
				})
			}
			if err := group.Wait(); err != nil {
				yield(none, err)
				return
			}
			for _, v := range values {
				if !yield(v, nil) {
					return
				}
			}
		}
	}
}

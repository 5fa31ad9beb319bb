package storage

import (
	"context"
	"fmt"
	"iter"
)

// Limited wraps a store and runs at most n calls concurrently; further calls wait for a slot or for the end of their
// context. A listing releases its slot while its consumer handles an object: the consumer may call the store as well.
type Limited struct {
	around
	slots chan struct{}
}

var (
	_ Store     = (*Limited)(nil)
	_ resumable = (*Limited)(nil)
)

// NewLimited wraps store; n is at least 1.
func NewLimited(store Store, n int) (*Limited, error) {
	if n < 1 {
		return nil, fmt.Errorf("limited store: n is %d, must be at least 1", n)
	}
	l := &Limited{slots: make(chan struct{}, n)}
	l.around = around{store, l.within}
	return l, nil
}

func (l *Limited) acquire(ctx context.Context, action, key string) error {
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s %s: %w", action, key, ctx.Err())
	}
}

func (l *Limited) release() { <-l.slots }

func (l *Limited) within(ctx context.Context, action, key string, call func() error) error {
	if err := l.acquire(ctx, action, key); err != nil {
		return err
	}
	defer l.release()
	return call()
}

// List implements Store.
func (l *Limited) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return l.listAfter(ctx, prefix, "")
}

// listAfter implements resumable.
func (l *Limited) listAfter(ctx context.Context, prefix, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := l.acquire(ctx, "list", prefix); err != nil {
			yield(Info{}, err)
			return
		}
		acquired := true
		defer func() {
			if acquired {
				l.release()
			}
		}()
		for info, err := range listAfter(ctx, l.store, prefix, after) {
			l.release()
			acquired = false
			if !yield(info, err) || err != nil {
				return
			}
			if err := l.acquire(ctx, "list", prefix); err != nil {
				yield(Info{}, err)
				return
			}
			acquired = true
		}
	}
}

package storage

import (
	"context"
	"fmt"
	"iter"
)

// Limited wraps a store and runs at most n calls concurrently; further calls wait for a slot or for the end of their
// context. A listing releases its slot while its consumer handles an object: the consumer may call the store as well.
type Limited struct {
	store Store
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
	return &Limited{store: store, slots: make(chan struct{}, n)}, nil
}

// acquire waits for a slot; release returns the slot.
func (l *Limited) acquire(ctx context.Context, action, key string) error {
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s %s: %w", action, key, ctx.Err())
	}
}

func (l *Limited) release() { <-l.slots }

// Get implements Store.
func (l *Limited) Get(ctx context.Context, key string) ([]byte, error) {
	if err := l.acquire(ctx, "get", key); err != nil {
		return nil, err
	}
	defer l.release()
	return l.store.Get(ctx, key)
}

// Put implements Store.
func (l *Limited) Put(ctx context.Context, key string, data []byte) error {
	if err := l.acquire(ctx, "put", key); err != nil {
		return err
	}
	defer l.release()
	return l.store.Put(ctx, key, data)
}

// Create implements Store.
func (l *Limited) Create(ctx context.Context, key string, data []byte) error {
	if err := l.acquire(ctx, "create", key); err != nil {
		return err
	}
	defer l.release()
	return l.store.Create(ctx, key, data)
}

// Delete implements Store.
func (l *Limited) Delete(ctx context.Context, key string) error {
	if err := l.acquire(ctx, "delete", key); err != nil {
		return err
	}
	defer l.release()
	return l.store.Delete(ctx, key)
}

// Stat implements Store.
func (l *Limited) Stat(ctx context.Context, key string) (Info, error) {
	if err := l.acquire(ctx, "stat", key); err != nil {
		return Info{}, err
	}
	defer l.release()
	return l.store.Stat(ctx, key)
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
			if !yield(info, err) {
				return
			}
			if err != nil {
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

package coordinator_test

import (
	"context"
	"iter"

	"ddiff/storage"
)

// hookedStore calls before ahead of each get, put, create, delete and list, with the key or prefix. An error of before is that of
// the call. It calls after, which may be nil, after a put, create or delete.
type hookedStore struct {
	storage.Store
	before func(call, key string) error
	after  func(call, key string)
}

// write performs a call that changes the store.
func (s *hookedStore) write(call, key string, act func() error) error {
	if err := s.before(call, key); err != nil {
		return err
	}
	err := act()
	if s.after != nil {
		s.after(call, key)
	}
	return err
}

func (s *hookedStore) Get(ctx context.Context, key string) ([]byte, error) {
	if err := s.before("get", key); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, key)
}

func (s *hookedStore) Put(ctx context.Context, key string, data []byte) error {
	return s.write("put", key, func() error { return s.Store.Put(ctx, key, data) })
}

func (s *hookedStore) Create(ctx context.Context, key string, data []byte) error {
	return s.write("create", key, func() error { return s.Store.Create(ctx, key, data) })
}

func (s *hookedStore) Delete(ctx context.Context, key string) error {
	return s.write("delete", key, func() error { return s.Store.Delete(ctx, key) })
}

func (s *hookedStore) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	if err := s.before("list", prefix); err != nil {
		return func(yield func(storage.Info, error) bool) { yield(storage.Info{}, err) }
	}
	return s.Store.List(ctx, prefix)
}

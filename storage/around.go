package storage

import (
	"context"
	"io"
)

// around implements the methods of a store, except List, for wrappers that change neither keys nor results. do decides when
// and how often to run a call, and returns its error or an error of its own.
type around struct {
	store Store
	do    func(ctx context.Context, action, key string, call func() error) error
}

// Get implements Store.
func (a *around) Get(ctx context.Context, key string) (data []byte, err error) {
	err = a.do(ctx, "get", key, func() (err error) {
		data, err = a.store.Get(ctx, key)
		return err
	})
	return data, err
}

// Put implements Store.
func (a *around) Put(ctx context.Context, key string, data []byte) error {
	return a.do(ctx, "put", key, func() error { return a.store.Put(ctx, key, data) })
}

// PutFrom implements PutterFrom.
func (a *around) PutFrom(ctx context.Context, key string, data io.ReaderAt, size int64) error {
	return a.do(ctx, "put", key, func() error { return putFrom(ctx, a.store, key, data, size) })
}

// Create implements Store.
func (a *around) Create(ctx context.Context, key string, data []byte) error {
	return a.do(ctx, "create", key, func() error { return a.store.Create(ctx, key, data) })
}

// Delete implements Store.
func (a *around) Delete(ctx context.Context, key string) error {
	return a.do(ctx, "delete", key, func() error { return a.store.Delete(ctx, key) })
}

// Stat implements Store.
func (a *around) Stat(ctx context.Context, key string) (info Info, err error) {
	err = a.do(ctx, "stat", key, func() (err error) {
		info, err = a.store.Stat(ctx, key)
		return err
	})
	return info, err
}

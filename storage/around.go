package storage

import "context"

// operation is one call of a method of a store, except List.
type operation struct {
	// name is "get", "put", "create", "delete" or "stat".
	name string
	key  string
	// size is the number of bytes that the call writes, or has read.
	size int64
	// run calls the method.
	run func(ctx context.Context, key string) error
}

// around implements the methods of a store, except List, for wrappers. do decides with which context and key, when and
// how often to run an operation, and returns its error or an error of its own.
type around struct {
	store Store
	do    func(ctx context.Context, o *operation) error
}

// Get implements Store.
func (a *around) Get(ctx context.Context, key string) (data []byte, err error) {
	o := &operation{name: "get", key: key}
	o.run = func(ctx context.Context, key string) (err error) {
		data, err = a.store.Get(ctx, key)
		o.size = int64(len(data))
		return err
	}
	err = a.do(ctx, o)
	return data, err
}

// Put implements Store.
func (a *around) Put(ctx context.Context, key string, data []byte) error {
	return a.do(ctx, &operation{"put", key, int64(len(data)), func(ctx context.Context, key string) error {
		return a.store.Put(ctx, key, data)
	}})
}

// Create implements Store.
func (a *around) Create(ctx context.Context, key string, data []byte) error {
	return a.do(ctx, &operation{"create", key, int64(len(data)), func(ctx context.Context, key string) error {
		return a.store.Create(ctx, key, data)
	}})
}

// Delete implements Store.
func (a *around) Delete(ctx context.Context, key string) error {
	return a.do(ctx, &operation{"delete", key, 0, func(ctx context.Context, key string) error {
		return a.store.Delete(ctx, key)
	}})
}

// Stat implements Store.
func (a *around) Stat(ctx context.Context, key string) (info Info, err error) {
	o := &operation{name: "stat", key: key}
	o.run = func(ctx context.Context, full string) (err error) {
		info, err = a.store.Stat(ctx, full)
		if err == nil {
			info.Key = key
		}
		return err
	}
	err = a.do(ctx, o)
	return info, err
}

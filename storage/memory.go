package storage

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory stores objects in the memory of the process, for tests. NewMemory returns one.
type Memory struct {
	// MaxBytes limits the size of an object; 0 means DefaultMaxBytes. Set it before the first call.
	MaxBytes int64

	mu      sync.RWMutex
	objects map[string]object
}

// object is one stored value; data is immutable.
type object struct {
	data     []byte
	modified time.Time
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{objects: make(map[string]object)}
}

// Get implements Store.
func (m *Memory) Get(ctx context.Context, key string) ([]byte, error) {
	if err := begin(ctx, "get", key); err != nil {
		return nil, err
	}
	m.mu.RLock()
	o, ok := m.objects[key]
	m.mu.RUnlock()
	if !ok {
		return nil, fmt.Errorf("get %s: %w", key, ErrNotFound)
	}
	if err := checkSize(int64(len(o.data)), m.MaxBytes); err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	return append([]byte{}, o.data...), nil
}

// Put implements Store.
func (m *Memory) Put(ctx context.Context, key string, data []byte) error {
	return m.write(ctx, "put", key, data, true)
}

// Create implements Store.
func (m *Memory) Create(ctx context.Context, key string, data []byte) error {
	return m.write(ctx, "create", key, data, false)
}

func (m *Memory) write(ctx context.Context, action, key string, data []byte, replace bool) error {
	if err := begin(ctx, action, key); err != nil {
		return err
	}
	if err := checkSize(int64(len(data)), m.MaxBytes); err != nil {
		return fmt.Errorf("%s %s: %w", action, key, err)
	}
	o := object{data: bytes.Clone(data), modified: time.Now()}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.objects[key]; ok && !replace {
		return fmt.Errorf("%s %s: %w", action, key, ErrExists)
	}
	m.objects[key] = o
	return nil
}

// Delete implements Store.
func (m *Memory) Delete(ctx context.Context, key string) error {
	if err := begin(ctx, "delete", key); err != nil {
		return err
	}
	m.mu.Lock()
	delete(m.objects, key)
	m.mu.Unlock()
	return nil
}

// List implements Store. It yields the objects that exist at the beginning of the iteration.
func (m *Memory) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := CheckPrefix(prefix); err != nil {
			yield(Info{}, fmt.Errorf("list: %w", err))
			return
		}
		for _, info := range m.snapshot(prefix) {
			if err := ctx.Err(); err != nil {
				yield(Info{}, fmt.Errorf("list %q: %w", prefix, err))
				return
			}
			if !yield(info, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(Info{}, fmt.Errorf("list %q: %w", prefix, err))
		}
	}
}

// snapshot returns the objects with the prefix, sorted by key.
func (m *Memory) snapshot(prefix string) []Info {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var infos []Info
	for key, o := range m.objects {
		if strings.HasPrefix(key, prefix) {
			infos = append(infos, o.info(key))
		}
	}
	slices.SortFunc(infos, func(a, b Info) int { return strings.Compare(a.Key, b.Key) })
	return infos
}

// Stat implements Store.
func (m *Memory) Stat(ctx context.Context, key string) (Info, error) {
	if err := begin(ctx, "stat", key); err != nil {
		return Info{}, err
	}
	m.mu.RLock()
	o, ok := m.objects[key]
	m.mu.RUnlock()
	if !ok {
		return Info{}, fmt.Errorf("stat %s: %w", key, ErrNotFound)
	}
	return o.info(key), nil
}

func (o object) info(key string) Info {
	return Info{Key: key, Size: int64(len(o.data)), Modified: o.modified}
}

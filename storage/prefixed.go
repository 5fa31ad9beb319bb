package storage

import (
	"context"
	"fmt"
	"iter"
	"strings"
)

// Prefixed is the part of a store below a prefix: its key "a" is the key "PREFIX/a" of the store. No key reaches
// outside of the prefix.
type Prefixed struct {
	store  Store
	prefix string // with a trailing slash
}

var (
	_ Store     = (*Prefixed)(nil)
	_ resumable = (*Prefixed)(nil)
)

// NewPrefixed returns the part of a store below prefix, which is a key with or without a trailing slash. The limit
// MaxKeyBytes includes the prefix.
func NewPrefixed(store Store, prefix string) (*Prefixed, error) {
	prefix = strings.TrimSuffix(prefix, "/")
	if err := CheckKey(prefix); err != nil {
		return nil, fmt.Errorf("prefixed store: prefix: %w", err)
	}
	return &Prefixed{store: store, prefix: prefix + "/"}, nil
}

func (p *Prefixed) key(action, key string) (string, error) {
	if err := CheckKey(key); err != nil {
		return "", fmt.Errorf("%s: %w", action, err)
	}
	return p.prefix + key, nil
}

// RemoveEmpty removes a directory and its parents, as far as they are empty, if the store has directories. See
// [Dir.RemoveEmpty].
func (p *Prefixed) RemoveEmpty(dir string) error {
	full, err := p.key("remove directory", dir)
	if d, ok := p.store.(interface{ RemoveEmpty(dir string) error }); ok && err == nil {
		err = d.RemoveEmpty(full)
	}
	return err
}

// Get implements Store.
func (p *Prefixed) Get(ctx context.Context, key string) ([]byte, error) {
	full, err := p.key("get", key)
	if err != nil {
		return nil, err
	}
	return p.store.Get(ctx, full)
}

// Put implements Store.
func (p *Prefixed) Put(ctx context.Context, key string, data []byte) error {
	full, err := p.key("put", key)
	if err != nil {
		return err
	}
	return p.store.Put(ctx, full, data)
}

// Create implements Store.
func (p *Prefixed) Create(ctx context.Context, key string, data []byte) error {
	full, err := p.key("create", key)
	if err != nil {
		return err
	}
	return p.store.Create(ctx, full, data)
}

// Delete implements Store.
func (p *Prefixed) Delete(ctx context.Context, key string) error {
	full, err := p.key("delete", key)
	if err != nil {
		return err
	}
	return p.store.Delete(ctx, full)
}

// Stat implements Store.
func (p *Prefixed) Stat(ctx context.Context, key string) (Info, error) {
	full, err := p.key("stat", key)
	if err != nil {
		return Info{}, err
	}
	info, err := p.store.Stat(ctx, full)
	info.Key = strings.TrimPrefix(info.Key, p.prefix)
	return info, err
}

// List implements Store.
func (p *Prefixed) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return p.listAfter(ctx, prefix, "")
}

// listAfter implements resumable.
func (p *Prefixed) listAfter(ctx context.Context, prefix, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := CheckPrefix(prefix); err != nil {
			yield(Info{}, fmt.Errorf("list: %w", err))
			return
		}
		if after != "" {
			after = p.prefix + after
		}
		for info, err := range listAfter(ctx, p.store, p.prefix+prefix, after) {
			info.Key = strings.TrimPrefix(info.Key, p.prefix)
			if !yield(info, err) {
				return
			}
		}
	}
}

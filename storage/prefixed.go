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
	around
	prefix string // with a trailing slash
}

var _ Store = (*Prefixed)(nil)

// NewPrefixed returns the part of a store below prefix, which is a key with or without a trailing slash. The limit
// MaxKeyBytes includes the prefix.
func NewPrefixed(store Store, prefix string) (*Prefixed, error) {
	prefix = strings.TrimSuffix(prefix, "/")
	if err := CheckKey(prefix); err != nil {
		return nil, fmt.Errorf("prefixed store: prefix: %w", err)
	}
	p := &Prefixed{prefix: prefix + "/"}
	p.around = around{store, func(ctx context.Context, o *operation) error {
		if err := CheckKey(o.key); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
		return o.run(ctx, p.prefix+o.key)
	}}
	return p, nil
}

// List implements Store.
func (p *Prefixed) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := CheckPrefix(prefix); err != nil {
			yield(Info{}, fmt.Errorf("list: %w", err))
			return
		}
		for info, err := range p.store.List(ctx, p.prefix+prefix) {
			info.Key = strings.TrimPrefix(info.Key, p.prefix)
			if !yield(info, err) {
				return
			}
		}
	}
}

package restore

import (
	"errors"
	"fmt"
	"slices"
)

// recent is a cache of the most recently used values. It closes the values that it evicts.
type recent[T interface{ Close() error }] struct {
	limit int
	keys  []string // least recently used first
	vals  map[string]T
}

// get returns the value of a key, and builds a missing one.
func (r *recent[T]) get(key string, build func() (T, error)) (T, error) {
	if v, ok := r.vals[key]; ok {
		i := slices.Index(r.keys, key)
		r.keys = append(slices.Delete(r.keys, i, i+1), key)
		return v, nil
	}
	// Evict first: two large models may not fit into memory together.
	for len(r.keys) >= r.limit {
		if err := r.vals[r.keys[0]].Close(); err != nil {
			var none T
			return none, fmt.Errorf("make room for a model: %w", err)
		}
		delete(r.vals, r.keys[0])
		r.keys = r.keys[1:]
	}
	v, err := build()
	if err != nil {
		var none T
		return none, err
	}
	if r.vals == nil {
		r.vals = map[string]T{}
	}
	r.vals[key] = v
	r.keys = append(r.keys, key)
	return v, nil
}

// rekey gives the most recently used value that fits a missing key that key. The value is no longer found under its old one.
func (r *recent[T]) rekey(key string, fits func(T) (bool, error)) error {
	if _, ok := r.vals[key]; ok {
		return nil
	}
	for i, old := range slices.Backward(r.keys) {
		ok, err := fits(r.vals[old])
		if err != nil {
			return err
		}
		if ok {
			r.keys[i], r.vals[key] = key, r.vals[old]
			delete(r.vals, old)
			return nil
		}
	}
	return nil
}

// clear closes and removes all values.
func (r *recent[T]) clear() error {
	var errs []error
	for _, key := range r.keys {
		errs = append(errs, r.vals[key].Close())
	}
	r.keys, r.vals = nil, nil
	return errors.Join(errs...)
}

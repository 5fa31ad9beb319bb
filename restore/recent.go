package restore

import (
	"errors"
	"fmt"
	"slices"
)

// recent is a cache of the most recently used values. It closes the values that it evicts.
type recent[T interface{ Close() error }] struct {
	limit   int
	entries []entry[T] // least recently used first
}

type entry[T any] struct {
	key   string
	value T
}

// find returns the place of a key, or -1.
func (r *recent[T]) find(key string) int {
	return slices.IndexFunc(r.entries, func(e entry[T]) bool { return e.key == key })
}

// get returns the value of a key, and builds a missing one.
func (r *recent[T]) get(key string, build func() (T, error)) (value T, err error) {
	if i := r.find(key); i >= 0 {
		e := r.entries[i]
		r.entries = append(slices.Delete(r.entries, i, i+1), e)
		return e.value, nil
	}
	// Evict first: two large models may not fit into memory together.
	for len(r.entries) >= r.limit {
		if err := r.entries[0].value.Close(); err != nil {
			return value, fmt.Errorf("make room for a model: %w", err)
		}
		r.entries = slices.Delete(r.entries, 0, 1)
	}
	if value, err = build(); err == nil {
		r.entries = append(r.entries, entry[T]{key, value})
	}
	return value, err
}

// rekey gives the most recently used value that fits a missing key that key. The value is no longer found under its old one.
func (r *recent[T]) rekey(key string, fits func(T) (bool, error)) error {
	if r.find(key) >= 0 {
		return nil
	}
	for i, e := range slices.Backward(r.entries) {
		ok, err := fits(e.value)
		if err != nil {
			return err
		}
		if ok {
			r.entries[i].key = key
			return nil
		}
	}
	return nil
}

// clear closes and removes all values.
func (r *recent[T]) clear() error {
	var errs []error
	for _, e := range r.entries {
		errs = append(errs, e.value.Close())
	}
	r.entries = nil
	return errors.Join(errs...)
}

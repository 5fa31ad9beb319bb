package storage

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"
)

// DefaultMaxBytes is the default size limit of an object: 1 GiB.
const DefaultMaxBytes int64 = 1 << 30

// Info describes an object without its bytes.
type Info struct {
	// Key is the object's key.
	Key string
	// Size is the number of bytes.
	Size int64
	// Modified is the time of the last write by the clock of the store.
	Modified time.Time
	// ETag identifies the version of the object; only S3.Stat states it.
	ETag string
}

// Store is the union of all methods of a store, for wrappers. All methods are safe for concurrent use, return ErrBadKey
// for an invalid key, and return ctx.Err() if ctx ended before they took effect. Errors name the action and the key.
type Store interface {
	// Get returns the bytes of an object, which the caller owns. It returns ErrNotFound for a missing object and
	// ErrTooLarge for an object above the size limit of the store.
	Get(ctx context.Context, key string) ([]byte, error)
	// Put writes or replaces an object. A reader sees the old bytes or the new bytes, never a mixture. After
	// an error, data may still be read for a moment.
	Put(ctx context.Context, key string, data []byte) error
	// Create writes an object unless the key has one. Of racing creators exactly one succeeds; the others get
	// ErrExists once the object is readable.
	Create(ctx context.Context, key string, data []byte) error
	// Delete removes an object. It is idempotent.
	Delete(ctx context.Context, key string) error
	// List yields the objects whose key begins with prefix, in byte order of the keys. It may or may not yield
	// objects that are created or deleted during the listing. It yields an error once, as the last pair.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]
	// Stat describes an object. It returns ErrNotFound for a missing object.
	Stat(ctx context.Context, key string) (Info, error)
}

// begin checks the key and the context at the beginning of a method.
func begin(ctx context.Context, action, key string) error {
	if err := CheckKey(key); err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: %w", action, key, err)
	}
	return nil
}

// checkSize returns ErrTooLarge for a size above limit; limit 0 means DefaultMaxBytes.
func checkSize(size, limit int64) error {
	if limit = cmp.Or(limit, DefaultMaxBytes); size > limit {
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, size, limit)
	}
	return nil
}

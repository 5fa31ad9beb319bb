package storage

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// DefaultMaxBytes is the size limit of an object when a store sets none: 1 GiB.
const DefaultMaxBytes int64 = 1 << 30

// Info describes an object without its bytes.
type Info struct {
	// Key is the object's key.
	Key string
	// Size is the number of bytes.
	Size int64
	// Modified is when the object was written, by the store's clock.
	Modified time.Time
}

// Store is everything a store can do, for wrappers around one. All methods may be called
// concurrently, refuse bad keys with ErrBadKey, and return ctx.Err() when ctx has ended
// before they took effect. Errors name the action and the key.
type Store interface {
	// Get returns the bytes of an object; the caller owns them. It returns ErrNotFound,
	// or ErrTooLarge for an object above the store's limit.
	Get(ctx context.Context, key string) ([]byte, error)
	// Put writes an object, and replaces the one that is there. A reader sees the old
	// bytes or the new ones, never a mixture. The store keeps no reference to data.
	Put(ctx context.Context, key string, data []byte) error
	// Create writes an object only when there is none. Of racing creators exactly one
	// succeeds; the others get ErrExists, and by then the winner's bytes can be read.
	Create(ctx context.Context, key string, data []byte) error
	// Delete removes an object. Deleting one that is not there succeeds.
	Delete(ctx context.Context, key string) error
	// List yields the objects whose key begins with prefix, in byte order of the keys.
	// Objects that come or go during the listing may or may not be yielded. An error is
	// yielded once, as the last pair.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]
	// Stat describes an object. It returns ErrNotFound when there is none.
	Stat(ctx context.Context, key string) (Info, error)
}

// begin is the check that every method makes first.
func begin(ctx context.Context, action, key string) error {
	if err := CheckKey(key); err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: %w", action, key, err)
	}
	return nil
}

// checkSize refuses an object of size bytes above limit, where 0 means DefaultMaxBytes.
func checkSize(size, limit int64) error {
	if limit == 0 {
		limit = DefaultMaxBytes
	}
	if size > limit {
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, size, limit)
	}
	return nil
}

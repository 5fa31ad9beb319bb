package storage

import (
	"context"
	"fmt"
	"io"
)

// PutterFrom is a store that writes an object without holding it in memory. Dir, S3 and the wrappers implement it.
type PutterFrom interface {
	// PutFrom is Put of size bytes of data, which it may read several times. It ignores the size limit of the
	// store, which protects the memory of readers; Get returns ErrTooLarge for a larger object.
	PutFrom(ctx context.Context, key string, data io.ReaderAt, size int64) error
}

var (
	_ PutterFrom = (*Dir)(nil)
	_ PutterFrom = (*S3)(nil)
	_ PutterFrom = (*Prefixed)(nil)
	_ PutterFrom = (*Traced)(nil)
)

// putter is the part of a store that [PutFrom] needs at least.
type putter interface {
	Put(ctx context.Context, key string, data []byte) error
}

// PutFrom writes to any store. A store that is no [PutterFrom] gets all bytes in one Put.
func PutFrom(ctx context.Context, store putter, key string, data io.ReaderAt, size int64) error {
	if s, ok := store.(PutterFrom); ok {
		return s.PutFrom(ctx, key, data, size)
	}
	all, err := io.ReadAll(io.NewSectionReader(data, 0, size))
	if err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	return store.Put(ctx, key, all)
}

// PutFrom implements PutterFrom.
func (d *Dir) PutFrom(ctx context.Context, key string, data io.ReaderAt, size int64) error {
	return d.write(ctx, "put", key, io.NewSectionReader(data, 0, size), rename)
}

// PutFrom implements PutterFrom, with one request; S3 accepts 5 GiB in one.
func (s *S3) PutFrom(ctx context.Context, key string, data io.ReaderAt, size int64) error {
	return s.write(ctx, "put", key, 0, func() error { return s.sendFrom(ctx, key, data, size, "") })
}

package raster

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/semaphore"
)

const (
	// decodedPixel is the largest number of bytes of memory per pixel while an image is decoded and fitted.
	decodedPixel = 32
	// decodedByte is the largest number of bytes of memory per byte of a .npy file.
	decodedByte = 4
)

// ErrBudget: decoding needs more memory than the whole [Budget]. Nothing has been allocated. A machine with more memory
// may decode the file.
var ErrBudget = errors.New("exceeds the memory for decoding")

// Budget limits the memory of concurrent decoders. A nil Budget has no limit. Create it with NewBudget.
type Budget struct {
	size int64
	free *semaphore.Weighted
}

// NewBudget returns a budget of a number of bytes, which must be positive.
func NewBudget(size int64) *Budget {
	return &Budget{size: size, free: semaphore.NewWeighted(size)}
}

// Reserve reserves the memory for decoding a file, an image or a .npy array, by its header: 32 bytes per pixel, and 4
// bytes per byte of an array. It waits for other decoders, and the caller calls release after decoding and fitting. The
// error wraps ErrBudget, or is that of ctx. A header that cannot be read needs no memory: decoding will fail.
func (b *Budget) Reserve(ctx context.Context, data []byte) (release func(), err error) {
	need := needed(data)
	if b == nil || need == 0 {
		return func() {}, nil
	}
	if need > b.size {
		return nil, fmt.Errorf("decoding needs %d MiB, the limit is %d MiB: %w", need>>20, b.size>>20, ErrBudget)
	}
	if err := b.free.Acquire(ctx, need); err != nil {
		return nil, fmt.Errorf("wait for memory to decode: %w", err)
	}
	return func() { b.free.Release(need) }, nil
}

// needed returns the bytes of memory for decoding a file, or 0 if its header cannot be read. Sizes above MaxPixels need no
// memory: decoding refuses them.
func needed(data []byte) int64 {
	if IsNPY(data) {
		return decodedByte * int64(len(data))
	}
	width, height, err := Probe(data)
	if err != nil || width > MaxPixels/height {
		return 0
	}
	return decodedPixel * int64(width) * int64(height)
}

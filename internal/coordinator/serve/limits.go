package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"ddiff/api"
	"ddiff/storage"
)

const (
	// maxMemory is the number of bytes for large answers, of all requests together.
	maxMemory = 1 << 30
	// largeBytes is the share of an answer of unknown size, a comparison.
	largeBytes = maxMemory / 4
)

// reservedKey is the key of the number of bytes that a request has reserved.
type reservedKey struct{}

// reserving returns the memory of a request when its answer is sent.
func (s *Server) reserving(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var reserved int64
		defer func() { s.memory.Release(reserved) }()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), reservedKey{}, &reserved)))
	})
}

// reserve waits for memory, which the request has until its answer is sent. A request may call it once.
func (s *Server) reserve(ctx context.Context, bytes int64) error {
	if bytes > maxMemory {
		return api.NewError(api.ErrRefused, fmt.Sprintf("the file has %d MiB; read it from the store: answers have up to %d MiB", bytes>>21, maxMemory>>21))
	}
	if err := s.memory.Acquire(ctx, bytes); err != nil {
		return fmt.Errorf("wait for memory: %w", err)
	}
	if reserved, ok := ctx.Value(reservedKey{}).(*int64); ok {
		*reserved = bytes
	}
	return nil
}

// read returns a file of a campaign's output by its key below the output, as in items/ID/restored.png or index.html.
func (s *Server) read(ctx context.Context, id, key string) ([]byte, error) {
	o, err := s.cfg.Backend.Output(ctx, id)
	if err != nil {
		return nil, err
	}
	for info, err := range o.Store.List(ctx, key) { // the key itself is the first
		if err == nil && info.Key == key {
			err = s.reserve(ctx, 2*info.Size) // the file and the answer
		}
		if err != nil {
			return nil, err
		}
		break
	}
	data, err := o.Store.Get(ctx, key)
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrBadKey) {
		return nil, api.NewError(api.ErrNotFound, "there is no file "+key)
	}
	return data, err
}

package gpuworker_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// hiding is a store that refuses a result because it exists, and then does not return it for a while.
type hiding struct {
	store
	hidden atomic.Int32 // number of reads that find no result
}

func (h *hiding) Create(ctx context.Context, key string, data []byte) error {
	err := h.store.Create(ctx, key, data)
	if err == nil && strings.HasSuffix(key, manifest.FileResult) {
		h.hidden.Store(2)
		err = fmt.Errorf("create %s: %w", key, storage.ErrExists)
	}
	return err
}

func (h *hiding) Get(ctx context.Context, key string) ([]byte, error) {
	if strings.HasSuffix(key, manifest.FileResult) && h.hidden.Add(-1) >= 0 {
		return nil, fmt.Errorf("get %s: %w", key, storage.ErrNotFound)
	}
	return h.store.Get(ctx, key)
}

// TestStoreHidesExistingResult: the item has a result, and must not be buried.
func TestStoreHidesExistingResult(t *testing.T) {
	t.Parallel()
	h := newHost(t, newStore(t), queue.Config{AckWait: patience, MaxAttempts: 1})
	publish(t, h.queue, items(t, 1)...)
	h.begin(h.config("worker", onStore(&hiding{store: h.store})))
	wantDone(t, results(t, h.queue, 1))
	wantEmpty(t, h.queue)
}

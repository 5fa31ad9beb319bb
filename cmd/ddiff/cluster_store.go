package main

import (
	"context"
	"fmt"
	"log/slog"

	"ddiff/dataset"
	"ddiff/internal/redact"
	"ddiff/restore/onnx"
	"ddiff/storage"
)

// modelBytes is the size limit of priors and operator files, the largest objects of a cluster.
const modelBytes int64 = onnx.MaxFileBytes

// openClusterStore opens the store of a cluster, which holds priors of up to modelBytes.
func openClusterStore(ctx context.Context, address string, log *slog.Logger) (*storage.Opened, error) {
	store, err := storage.Open(ctx, address, storage.Options{MaxBytes: modelBytes, Logger: log})
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", redact.Address(address), err)
	}
	return store, nil
}

// openModels opens the sources of priors and operator files. The store keeps a copy of each file, so they have no cache.
func (s sourceFlags) openModels(store string, log *slog.Logger) (datasets, error) {
	return s.openWith(store, log, func(c *dataset.Config) {
		c.MaxBytes, c.CacheBytes, c.CheckImage, c.CheckOther = modelBytes, -1, nil, nil
	})
}

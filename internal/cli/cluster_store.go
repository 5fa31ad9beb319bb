package cli

import (
	"context"
	"fmt"
	"log/slog"

	"ddiff/dataset"
	"ddiff/internal/redact"
	"ddiff/restore/onnx/modelfile"
	"ddiff/storage"
	"ddiff/telemetry"
)

// modelBytes is the size limit of priors and operator files, the largest objects of a cluster.
const modelBytes int64 = modelfile.MaxFileBytes

// OpenClusterStore opens the store of a cluster, which holds priors of up to modelBytes.
func OpenClusterStore(ctx context.Context, address string, log *slog.Logger) (*storage.Opened, error) {
	store, err := storage.Open(ctx, address, storage.Options{MaxBytes: modelBytes, Logger: log})
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", redact.Address(address), err)
	}
	return store, nil
}

// TracedStore returns the store at an address with spans and metrics.
func TracedStore(store storage.Store, address string, tel *telemetry.Telemetry, transfer *telemetry.Transfer) *storage.Traced {
	bucket := ""
	if c, err := storage.ParseS3URL(address); err == nil {
		bucket = c.Bucket
	}
	return storage.NewTraced(store, tel.Tracer("storage"), transfer, bucket)
}

// OpenModels opens the sources of priors and operator files. The store keeps a copy of each file, so they have no cache.
func (s SourceFlags) OpenModels(store string, log *slog.Logger) (Datasets, error) {
	return s.openWith(store, log, func(c *dataset.Config) {
		c.MaxBytes, c.CacheBytes, c.CheckImage, c.CheckOther = modelBytes, -1, nil, nil
	})
}

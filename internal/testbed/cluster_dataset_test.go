package testbed

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"ddiff/restore/item"
	"ddiff/storage"
)

// PutImages uploads files to the dataset's bucket.
func (c *Cluster) PutImages(ctx context.Context, files map[string][]byte) error {
	store, err := c.S3.open(ctx, Dataset, c.S3.Admin)
	if err != nil {
		return err
	}
	defer store.Close()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := store.Put(ctx, name, files[name]); err != nil {
			return fmt.Errorf("write images: %w", err)
		}
	}
	return nil
}

// PutAs writes an object to the results' bucket with the rights of a role.
func (c *Cluster) PutAs(ctx context.Context, role Role, key string) error {
	store, err := c.S3.open(ctx, Bucket, c.keys[role])
	if err != nil {
		return err
	}
	defer store.Close()
	return store.Put(ctx, key, []byte("an object of the "+string(role)))
}

// open opens a bucket.
func (s *S3) open(ctx context.Context, bucket string, k Keys) (*storage.S3, error) {
	return storage.OpenS3(ctx, storage.S3Config{
		Endpoint: s.endpoint(s.Address), CAFile: s.caFile(), Bucket: bucket, Region: "us-east-1", Addressing: storage.AddressingPath,
		AccessKey: k.Access, SecretKey: k.Secret,
	})
}

// Settled counts the items of an output with a result.
func (c *Cluster) Settled(output string) int {
	found, err := filepath.Glob(filepath.Join(c.Results(output), "items", "*", item.FileResult))
	if err != nil {
		return 0 // the pattern is valid
	}
	return len(found)
}

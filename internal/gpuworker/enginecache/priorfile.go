package enginecache

import (
	"context"
	"errors"
	"fmt"

	"ddiff/internal/failure"
	"ddiff/internal/record"
	"ddiff/internal/regular"
	"ddiff/internal/restore/prior"
	"ddiff/storage"
)

var (
	// ErrPriorFile: the prior of a campaign is not in the store, has another digest, or is not a prior. A retry would not
	// help.
	ErrPriorFile = failure.New(failure.Prior, "the campaign's prior cannot be used")
	// ErrOperatorFile is ErrPriorFile for an operator of a campaign.
	ErrOperatorFile = failure.New(failure.Prior, "the campaign's operator cannot be used")
)

// cacheBytes limits the files on the local disk.
const cacheBytes int64 = 64 << 30

// getter is the store of priors.
type getter interface {
	Get(ctx context.Context, key string) ([]byte, error)
}

// readPrior returns the bytes of a prior: those of the bundled prior, or of a file of the store.
func (c *Cache) readPrior(ctx context.Context, from record.PriorFile) ([]byte, error) {
	if from.Key != "" {
		return c.fetch(ctx, "prior", ErrPriorFile, from.Key, from.SHA256)
	}
	data, err := prior.Read(prior.Bundled)
	if got := regular.SHA256(data); err == nil && got != from.SHA256 {
		err = fmt.Errorf("%w: the campaign uses the bundled prior %.12s, this version bundles %.12s; run the version that submitted it",
			ErrPriorFile, from.SHA256, got)
	}
	return data, err
}

// fetch returns the bytes of a file, from the local disk or the store. kind names the file in messages, unusable is the error of a file that
// a retry would not help. Whoever may write to the local disk can write a file with a digest of the cache: the bytes must also have that of the
// campaign.
func (c *Cache) fetch(ctx context.Context, kind string, unusable error, key, sha string) ([]byte, error) {
	load := func(ctx context.Context) ([]byte, error) {
		data, err := c.cfg.Store.Get(ctx, key)
		switch {
		case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrTooLarge), errors.Is(err, storage.ErrBadKey):
			return nil, fmt.Errorf("%w: fetch %s: %w", unusable, key, err)
		case err != nil:
			return nil, fmt.Errorf("fetch %s %s: %w", kind, key, err)
		}
		if got := regular.SHA256(data); got != sha {
			return nil, fmt.Errorf("%w: the SHA-256 of %s is %.12s, the campaign expects %.12s; submit the campaign again under another name", unusable, key, got, sha)
		}
		c.cfg.Logger.Info("fetched "+kind, "key", key)
		return data, nil
	}
	data, err := c.files.Get(ctx, sha, load)
	if err == nil && regular.SHA256(data) != sha {
		c.cfg.Logger.Warn("somebody changed the cached "+kind+"; make its folder private", "folder", c.cfg.Dir, "sha256", sha)
		return load(ctx)
	}
	return data, err
}

package dataset

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"ddiff/storage"
)

// The kinds of cached values.
const (
	kindFile  = "file"
	kindIndex = "index"
)

// newCache opens the cache of remote files and of indexes. It returns nil when the cache is disabled or cannot be used.
func newCache(cfg Config) *storage.Cache {
	if cfg.CacheBytes < 0 {
		return nil
	}
	c, err := storage.NewCache(storage.CacheConfig{Dir: cfg.CacheDir, MaxBytes: cfg.CacheBytes, Logger: cfg.Logger})
	if err != nil {
		cfg.Logger.Warn("dataset is not cached on this machine", "reason", err)
		return nil
	}
	return c
}

// cached returns a cached value, or loads it. offset is the beginning of an index. The key contains the version of
// the object, so that a value is never stale. Without a version or a cache nothing is cached.
func (s *Sources) cached(
	ctx context.Context, kind string, a Address, version string, offset int64, load func(context.Context) ([]byte, error),
) ([]byte, error) {
	cache := s.cache()
	if cache == nil || version == "" {
		return load(ctx)
	}
	return cache.Get(ctx, fmt.Sprintf("dataset 5 %s %q %q %d", kind, a, version, offset), load)
}

func (s *Sources) version(ctx context.Context, a Address) (string, error) {
	if a.scheme == schemeHTTPS || a.scheme == schemeHTTP {
		r, err := s.web.request(ctx, http.MethodHead, a, 0, 0, "")
		if errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
			return "", err
		}
		if err != nil {
			return "", nil //nolint:nilerr // some servers support GET only
		}
		r.close() // empty
		return sizedVersion(r.ContentLength, strongETag(r.Response)), nil
	}
	obj, err := s.open(ctx, a)
	if err != nil {
		return "", err
	}
	return obj.version(), obj.close()
}

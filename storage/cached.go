package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// DefaultCacheBytes is the size of a read cache when the configuration sets none: 10 GiB.
const DefaultCacheBytes int64 = 10 << 30

// CacheConfig says where a read cache is and how large. Only Dir is required.
type CacheConfig struct {
	// Dir is the cache's directory on a local disk, made when it is missing. Several
	// processes may share it.
	Dir string
	// MaxBytes is the size of all cached files together, which is never exceeded, besides
	// files that are just being written. 0 means DefaultCacheBytes. A larger object is
	// not cached.
	MaxBytes int64
	// Namespace tells the keys of several stores in one Dir apart; the address of the
	// store is a good choice.
	Namespace string
	// Immutable reports whether a key's object never changes once it is there. Only such
	// keys are cached; nil means that all are.
	Immutable func(key string) bool
	// Now is the clock for "least recently used"; nil means time.Now.
	Now func() time.Time
	// Logger gets a warning when the cache cannot be used; nil means none.
	Logger *slog.Logger
}

// Validate reports the first field that is wrong, by name.
func (c CacheConfig) Validate() error {
	if c.Dir == "" {
		return errors.New("field Dir: missing")
	}
	if c.MaxBytes < 0 {
		return fmt.Errorf("field MaxBytes: %d is negative", c.MaxBytes)
	}
	return nil
}

// Cached wraps a store with a cache for Get on the local disk. It is meant for keys that are
// written once: priors, data sets, results. All other methods go to the store; Put and
// Delete through this wrapper also drop the key from the cache, and caches of other machines
// do not hear of it.
//
// A cached file appears whole or not at all and carries its key and a SHA-256; one that does
// not match is removed and the object fetched again. When the cache is full the files that
// were not read for the longest time make room. A cache that fails, as on a full disk, costs
// time and nothing else.
type Cached struct {
	store  Store
	config CacheConfig

	// mu lets the goroutines of this process wait for each other; processes do not.
	mu sync.Mutex
}

var _ Store = (*Cached)(nil)

// NewCached wraps store and opens or makes the cache. It removes what dead writers left.
func NewCached(store Store, config CacheConfig) (*Cached, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("cached store: %w", err)
	}
	if config.MaxBytes == 0 {
		config.MaxBytes = DefaultCacheBytes
	}
	if config.Immutable == nil {
		config.Immutable = func(string) bool { return true }
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(config.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("cached store: make %s: %w", config.Dir, writeError(err))
	}
	c := &Cached{store: store, config: config}
	if err := c.locked(func(l *cacheLedger) error { return l.shrink(config.MaxBytes) }); err != nil {
		return nil, fmt.Errorf("cached store: %w", err)
	}
	return c, nil
}

// Get implements Store.
func (c *Cached) Get(ctx context.Context, key string) ([]byte, error) {
	if err := begin(ctx, "get", key); err != nil {
		return nil, err
	}
	if !c.config.Immutable(key) {
		return c.store.Get(ctx, key)
	}
	if data, ok := c.load(ctx, key); ok {
		return data, nil
	}
	data, err := c.store.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	if err := c.keep(key, data); err != nil {
		c.config.Logger.WarnContext(ctx, "object not cached", "key", key, "error", err)
	}
	return data, nil
}

// Put implements Store.
func (c *Cached) Put(ctx context.Context, key string, data []byte) error {
	defer c.drop(key)
	return c.store.Put(ctx, key, data)
}

// Create implements Store.
func (c *Cached) Create(ctx context.Context, key string, data []byte) error {
	return c.store.Create(ctx, key, data)
}

// Delete implements Store.
func (c *Cached) Delete(ctx context.Context, key string) error {
	defer c.drop(key)
	return c.store.Delete(ctx, key)
}

// List implements Store.
func (c *Cached) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return c.store.List(ctx, prefix)
}

// Stat implements Store.
func (c *Cached) Stat(ctx context.Context, key string) (Info, error) {
	return c.store.Stat(ctx, key)
}

// label is what a cached file says it holds.
func (c *Cached) label(key string) string { return c.config.Namespace + "\x00" + key }

// file is the name of the key's cached file.
func (c *Cached) file(key string) string {
	return filepath.Join(c.config.Dir, cacheFileName(c.label(key)))
}

// load reads the key's cached file, if it is there and whole, and marks it as used.
func (c *Cached) load(ctx context.Context, key string) ([]byte, bool) {
	name := c.file(key)
	content, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	if err == nil {
		var data []byte
		if data, err = decodeCacheFile(content, c.label(key)); err == nil {
			now := c.config.Now()
			os.Chtimes(name, now, now) //nolint:errcheck // it may have been evicted since
			return data, true
		}
	}
	c.config.Logger.WarnContext(ctx, "cached object is unusable, fetching it again", "key", key, "error", err)
	c.drop(key)
	return nil, false
}

// drop removes the key's cached file. The ledger then counts too much until it is next
// counted anew, never too little.
func (c *Cached) drop(key string) {
	if CheckKey(key) == nil {
		os.Remove(c.file(key)) //nolint:errcheck // mostly it is not there
	}
}

// keep puts data into the cache, after making room. When another process is at it, the
// object is not cached this time.
func (c *Cached) keep(key string, data []byte) error {
	label := c.label(key)
	size := cacheFileSize(label, data)
	if size > c.config.MaxBytes {
		return nil
	}
	temp, err := writeCacheFile(c.config.Dir, label, data)
	if err != nil {
		return err
	}
	defer os.Remove(temp) //nolint:errcheck // gone after the rename
	now := c.config.Now()
	if err := os.Chtimes(temp, now, now); err != nil {
		return err
	}
	return c.locked(func(l *cacheLedger) error {
		if err := l.reserve(size, c.config.MaxBytes); err != nil {
			return err
		}
		return os.Rename(temp, c.file(key))
	})
}

// locked runs f while neither another goroutine nor another process changes the cache. When
// another process does, f is not run.
func (c *Cached) locked(f func(*cacheLedger) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ledger, err := openCacheLedger(c.config.Dir, c.config.Now)
	if errors.Is(err, errCacheBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	defer ledger.close()
	return f(ledger)
}

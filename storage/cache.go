package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ddiff/internal/regular"
)

// DefaultCacheBytes is the default size limit of a Cache: 10 GiB.
const DefaultCacheBytes int64 = 10 << 30

// CacheConfig configures a Cache. Only Dir is required.
type CacheConfig struct {
	// Dir is a directory on a local disk, created when it is missing. Several processes may share it.
	Dir string
	// MaxBytes limits the total size of cached files; files being written do not count, and another process may exceed
	// the limit by a sixteenth, or by one value if that is larger. A larger value is not cached. 0 means DefaultCacheBytes.
	MaxBytes int64
	// Now is the clock for "least recently used"; nil means time.Now.
	Now func() time.Time
	// Logger gets a warning when the cache cannot be used; nil means none.
	Logger *slog.Logger
}

// Validate reports the first invalid field by name.
func (c CacheConfig) Validate() error {
	if c.Dir == "" {
		return errors.New("field Dir: missing")
	}
	if c.MaxBytes < 0 {
		return fmt.Errorf("field MaxBytes: %d is negative", c.MaxBytes)
	}
	return nil
}

// Cache keeps immutable values on the local disk. All methods are safe for concurrent use.
//
// A cached file appears whole or not at all and carries its key and a SHA-256. A file that does not match is
// removed and its value loaded again. A full cache evicts the least recently used files. A failing cache, as
// on a full disk, costs time but never fails a Get.
type Cache struct {
	config CacheConfig

	mu sync.Mutex
	// total is the size of the files at the last count, and of those that this process has written since; written is the
	// size of the latter.
	total, written int64
}

// cacheTempPrefix begins the names of files that are being written.
const cacheTempPrefix = "ddiff-temp-"

// NewCache opens or creates a cache and removes the leftovers of dead writers.
func NewCache(config CacheConfig) (*Cache, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("open cache: %w", err)
	}
	config.MaxBytes = cmp.Or(config.MaxBytes, DefaultCacheBytes)
	config.Logger = cmp.Or(config.Logger, slog.New(slog.DiscardHandler))
	if config.Now == nil {
		config.Now = time.Now
	}
	if err := os.MkdirAll(config.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("open cache: %w", writeError(err))
	}
	probe, err := os.CreateTemp(config.Dir, cacheTempPrefix)
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		return nil, fmt.Errorf("open cache: %w", writeError(err))
	}
	c := &Cache{config: config}
	if err := c.count(0); err != nil {
		return nil, fmt.Errorf("open cache: %w", err)
	}
	return c, nil
}

// Get returns the cached value of key, or loads and caches it. A key is any text and names one value forever.
// The only errors are those of load.
func (c *Cache) Get(ctx context.Context, key string, load func(context.Context) ([]byte, error)) ([]byte, error) {
	if data, ok := c.read(ctx, key); ok {
		return data, nil
	}
	data, err := load(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.store(key, data); err != nil {
		c.config.Logger.WarnContext(ctx, "value not cached", "file", c.file(key), "error", err)
	}
	return data, nil
}

func (c *Cache) file(key string) string { return filepath.Join(c.config.Dir, cacheFileName(key)) }

// read returns the cached value of key, if it is intact, and marks it as used.
func (c *Cache) read(ctx context.Context, key string) ([]byte, bool) {
	name := c.file(key)
	content, err := regular.Read(name, c.config.MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	if err == nil {
		var data []byte
		if data, err = decodeCacheFile(content, key); err == nil {
			now := c.config.Now()
			os.Chtimes(name, now, now) //nolint:errcheck // another process may have evicted it
			return data, true
		}
	}
	c.config.Logger.WarnContext(ctx, "cached value is unusable, loading it again", "file", name, "error", err)
	os.Remove(name) //nolint:errcheck // best effort; the total is too high until the next count
	return nil, false
}

// store caches data after evicting other files if needed.
func (c *Cache) store(key string, data []byte) error {
	size := cacheFileSize(key, data)
	if size > c.config.MaxBytes {
		return nil
	}
	temp, err := writeCacheFile(c.config.Dir, key, data)
	if err != nil {
		return err
	}
	defer os.Remove(temp) //nolint:errcheck // gone after the rename
	now := c.config.Now()
	if err := os.Chtimes(temp, now, now); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// Other processes write too: count again now and then.
	if c.total+size > c.config.MaxBytes || c.written+size > c.config.MaxBytes/16 {
		if err := c.count(size); err != nil {
			return err
		}
	}
	c.total, c.written = c.total+size, c.written+size
	return os.Rename(temp, c.file(key))
}

type cachedFile struct {
	name string
	size int64
	used time.Time
}

// count counts the cached files. If they leave no space for size bytes, it evicts the least recently used ones until a
// tenth of the limit is free beside them, so that few calls evict.
func (c *Cache) count(size int64) error {
	files, err := c.scan()
	if err != nil {
		return fmt.Errorf("read cache: %w", err)
	}
	total, limit := int64(0), c.config.MaxBytes
	for _, f := range files {
		total += f.size
	}
	if total+size > limit {
		slices.SortFunc(files, func(a, b cachedFile) int { return a.used.Compare(b.used) })
		for _, f := range files {
			if total <= max(0, limit-limit/10-size) {
				break
			}
			if err := os.Remove(f.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("shrink cache: %w", writeError(err))
			}
			total -= f.size
		}
	}
	c.total, c.written = total, 0
	return nil
}

// scan lists the cached files, ignores foreign files and removes temporary files of dead writers.
func (c *Cache) scan() ([]cachedFile, error) {
	entries, err := os.ReadDir(c.config.Dir)
	if err != nil {
		return nil, err
	}
	var files []cachedFile
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		name := filepath.Join(c.config.Dir, entry.Name())
		switch {
		case isCacheFileName(entry.Name()):
			files = append(files, cachedFile{name: name, size: info.Size(), used: info.ModTime()})
		case strings.HasPrefix(entry.Name(), cacheTempPrefix) && info.ModTime().Before(c.config.Now().Add(-staleAfter)):
			os.Remove(name) //nolint:errcheck // retried by the next count
		}
	}
	return files, nil
}

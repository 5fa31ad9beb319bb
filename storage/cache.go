package storage

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
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

// Validate names the first field that is missing or out of range.
func (c CacheConfig) Validate() error {
	if c.Dir == "" {
		return errors.New("Dir is missing")
	}
	if c.MaxBytes < 0 {
		return fmt.Errorf("MaxBytes: %d is negative", c.MaxBytes)
	}
	return nil
}

// Cache keeps immutable values on the local disk. All methods are safe for concurrent use.
//
// The file of a value has the SHA-256 of its key as its name, in hexadecimal, and consists of the SHA-256 of this name and the value, and
// the value. It appears whole or not at all. A file that does not match is removed and its value loaded again. A full cache evicts the
// least recently used files. A failing cache, as on a full disk, costs time but never fails a Get.
type Cache struct {
	config CacheConfig

	mu sync.Mutex
	// total is the size of the files at the last count, and of those that this process has written since; written is the
	// size of the latter.
	total, written int64
}

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
	c := &Cache{config: config}
	err := os.MkdirAll(config.Dir, 0o755)
	if err == nil {
		err = c.in(func(folder *os.Root) error {
			probe, err := writeCached(folder, nil)
			if err == nil {
				err = folder.Remove(probe)
			}
			if err == nil {
				err = c.count(folder, 0)
			}
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("open cache: %w", writeError(err))
	}
	return c, nil
}

// Get returns the cached value of key, or loads and caches it. A key is any text and names one value forever.
// The only errors are those of load.
func (c *Cache) Get(ctx context.Context, key string, load func(context.Context) ([]byte, error)) ([]byte, error) {
	hash := sha256.Sum256([]byte(key))
	name := hex.EncodeToString(hash[:])
	if data, ok := c.read(ctx, name); ok {
		return data, nil
	}
	data, err := load(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.store(name, data); err != nil {
		c.config.Logger.WarnContext(ctx, "value not cached", "file", c.path(name), "error", err)
	}
	return data, nil
}

func (c *Cache) path(name string) string { return filepath.Join(c.config.Dir, name) }

// in calls use with the folder of the cache.
func (c *Cache) in(use func(folder *os.Root) error) error {
	folder, err := os.OpenRoot(c.config.Dir)
	if err != nil {
		return err
	}
	defer folder.Close() // a damaged file is detected
	return use(folder)
}

// cacheSum returns the digest of a value in the file of a name.
func cacheSum(name string, data []byte) []byte {
	sum := sha256.New()
	sum.Write([]byte(name))
	sum.Write(data)
	return sum.Sum(nil)
}

// read returns the value in a file, if it is intact, and marks it as used.
func (c *Cache) read(ctx context.Context, name string) ([]byte, bool) {
	var content []byte
	err := c.in(func(folder *os.Root) (err error) {
		content, err = regular.ReadIn(folder, name, c.config.MaxBytes)
		if err == nil && (len(content) < sha256.Size || string(cacheSum(name, content[sha256.Size:])) != string(content[:sha256.Size])) {
			err = ErrCorrupt
		}
		if err == nil {
			now := c.config.Now()
			folder.Chtimes(name, now, now) //nolint:errcheck // another process may have evicted it
		} else if !errors.Is(err, fs.ErrNotExist) {
			folder.Remove(name) //nolint:errcheck // best effort; the total is too high until the next count
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.config.Logger.WarnContext(ctx, "cached value is unusable, loading it again", "file", c.path(name), "error", err)
	}
	if err != nil {
		return nil, false
	}
	return content[sha256.Size:], true
}

// store writes the file of a value after evicting other files if needed.
func (c *Cache) store(name string, data []byte) error {
	size := int64(sha256.Size + len(data))
	if size > c.config.MaxBytes {
		return nil
	}
	return c.in(func(folder *os.Root) error {
		temp, err := writeCached(folder, cacheSum(name, data), data)
		if err != nil {
			return writeError(err)
		}
		defer folder.Remove(temp) //nolint:errcheck // gone after the rename
		now := c.config.Now()
		if err := folder.Chtimes(temp, now, now); err != nil {
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		// Other processes write too: count again now and then.
		if c.total+size > c.config.MaxBytes || c.written+size > c.config.MaxBytes/16 {
			if err := c.count(folder, size); err != nil {
				return err
			}
		}
		c.total, c.written = c.total+size, c.written+size
		return folder.Rename(temp, name)
	})
}

// writeCached writes a temporary file and returns its name. It does not sync: the digest detects damage by a power failure.
func writeCached(folder *os.Root, parts ...[]byte) (name string, err error) {
	name = tempPrefix + rand.Text()
	f, err := folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	for _, part := range parts {
		if err == nil {
			_, err = f.Write(part)
		}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, folder.Remove(name))
	}
	return name, nil
}

// count counts the cached files, ignores foreign files and removes temporary files of dead writers. If the files leave no space for size
// bytes, it evicts the least recently used ones until a tenth of the limit is free beside them, so that few calls evict.
func (c *Cache) count(folder *os.Root, size int64) error {
	entries, err := fs.ReadDir(folder.FS(), ".")
	if err != nil {
		return fmt.Errorf("read cache: %w", err)
	}
	var files []fs.FileInfo
	total, limit := int64(0), c.config.MaxBytes
	for _, entry := range entries {
		info, err := folder.Lstat(entry.Name())
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if _, err := hex.DecodeString(info.Name()); err == nil && len(info.Name()) == hex.EncodedLen(sha256.Size) {
			files = append(files, info)
			total += info.Size()
		}
	}
	removeStale(folder, c.config.Now().Add(-staleAfter))
	if total+size > limit {
		slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
		for _, f := range files {
			if total <= max(0, limit-limit/10-size) {
				break
			}
			if err := folder.Remove(f.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("shrink cache: %w", writeError(err))
			}
			total -= f.Size()
		}
	}
	c.total, c.written = total, 0
	return nil
}

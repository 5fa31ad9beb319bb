package storage_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/storage"
)

// origin loads values for a cache and counts the loads.
type origin struct {
	values map[string][]byte
	loads  atomic.Int64
}

// wantCached checks the value that the cache returns for a key.
func (o *origin) wantCached(t *testing.T, c *storage.Cache, key string) {
	t.Helper()
	got, err := c.Get(t.Context(), key, func(context.Context) ([]byte, error) {
		o.loads.Add(1)
		return o.values[key], nil
	})
	if err != nil || !bytes.Equal(got, o.values[key]) {
		t.Errorf("Get(%q) = %d bytes that differ, %v, want %d bytes", key, len(got), err, len(o.values[key]))
	}
}

func (o *origin) wantLoads(t *testing.T, want int64) {
	t.Helper()
	if n := o.loads.Swap(0); n != want {
		t.Errorf("%d loads, want %d", n, want)
	}
}

// clock advances by a second with each reading.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Second)
	return c.now
}

func newCache(t *testing.T, config storage.CacheConfig) *storage.Cache {
	t.Helper()
	c, err := storage.NewCache(config)
	must(t, err)
	return c
}

func TestCacheLoadsOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := &origin{values: map[string][]byte{"k": randomBytes(100_000, 1), "https://host/a b?c\n": []byte("any text is a key"), "": nil}}
	for range 2 { // the second cache finds the files of the first
		c := newCache(t, storage.CacheConfig{Dir: dir})
		for range 3 {
			for key := range o.values {
				o.wantCached(t, c, key)
			}
		}
	}
	o.wantLoads(t, 3)
}

func TestCacheReturnsLoadErrors(t *testing.T) {
	t.Parallel()
	c := newCache(t, storage.CacheConfig{Dir: t.TempDir()})
	_, err := c.Get(t.Context(), "k", func(context.Context) ([]byte, error) { return []byte("partial"), fs.ErrPermission })
	wantError(t, "Get", err, fs.ErrPermission)
	o := &origin{values: map[string][]byte{"k": []byte("whole")}}
	o.wantCached(t, c, "k")
	o.wantLoads(t, 1)
}

// cacheFiles lists the cached files.
func cacheFiles(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, strings.Repeat("[0-9a-f]", 64)))
	must(t, err)
	return names
}

func TestCacheDamagedFiles(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func([]byte) []byte{
		"flipped bit":    func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"flipped digest": func(b []byte) []byte { b[0] ^= 1; return b },
		"cut":            func(b []byte) []byte { return b[:len(b)-1] },
		"cut in digest":  func(b []byte) []byte { return b[:20] },
		"empty":          func([]byte) []byte { return nil },
		"longer":         func(b []byte) []byte { return append(b, 0) },
		"text":           func([]byte) []byte { return bytes.Repeat([]byte("text "), 100) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c, o := newCache(t, storage.CacheConfig{Dir: dir}), &origin{values: map[string][]byte{"k": randomBytes(100, 1)}}
			o.wantCached(t, c, "k")
			o.wantLoads(t, 1)
			file := cacheFiles(t, dir)[0]
			content, err := os.ReadFile(file)
			must(t, err)
			must(t, os.WriteFile(file, damage(content), 0o600))
			o.wantCached(t, c, "k")
			o.wantCached(t, c, "k")
			o.wantLoads(t, 1)
			// The file of another key is not that of the value either.
			o.values["other"] = []byte("x")
			must(t, os.Rename(file, filepath.Join(dir, fmt.Sprintf("%x", sha256.Sum256([]byte("other"))))))
			o.wantCached(t, c, "other")
			o.wantLoads(t, 1)
		})
	}
}

// cacheBytes returns the total size of the cached files.
func cacheBytes(t *testing.T, dir string) int64 {
	t.Helper()
	total := int64(0)
	for _, name := range cacheFiles(t, dir) {
		if info, err := os.Stat(name); err == nil {
			total += info.Size()
		}
	}
	return total
}

func TestCacheEvictsLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := &origin{values: map[string][]byte{}}
	key := func(i int) string { return fmt.Sprintf("k%02d", i) }
	for i := range 11 {
		o.values[key(i)] = randomBytes(1000, 1)
	}
	// Each file is a little larger than 1000 bytes; a full cache evicts down to 9 files.
	clock := &clock{now: time.Now()}
	limit := 10 * (sha256.Size + int64(len(o.values["k00"])))
	c := newCache(t, storage.CacheConfig{Dir: dir, MaxBytes: limit, Now: clock.read})
	for i := range 10 {
		o.wantCached(t, c, key(i))
	}
	o.wantCached(t, c, key(0)) // now k01 and k02 are the oldest
	o.wantLoads(t, 10)
	o.wantCached(t, c, key(10))
	o.wantLoads(t, 1)
	if size := cacheBytes(t, dir); size != limit/10*9 {
		t.Errorf("%d bytes are cached, want %d", size, limit/10*9)
	}
	for _, i := range []int{0, 3, 9, 10} {
		o.wantCached(t, c, key(i))
	}
	o.wantLoads(t, 0)
	o.wantCached(t, c, key(1))
	o.wantCached(t, c, key(2))
	o.wantLoads(t, 2)
}

func TestCacheTooLargeValue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := newCache(t, storage.CacheConfig{Dir: dir, MaxBytes: 1000})
	o := &origin{values: map[string][]byte{"969": make([]byte, 969), "968": make([]byte, 968), "100": make([]byte, 100)}}
	for _, key := range []string{"969", "968", "100"} {
		o.wantCached(t, c, key)
		if got := cacheBytes(t, dir); got > 1000 {
			t.Errorf("%d bytes are cached, want at most 1000", got)
		}
	}
	o.wantLoads(t, 3)
	o.wantCached(t, c, "969")
	o.wantLoads(t, 1)
	o.wantCached(t, c, "100")
	o.wantLoads(t, 0)
}

// TestCacheShared uses one directory from several caches, as processes do. None returns other bytes, and together they
// exceed the limit only by what they have not seen of each other.
func TestCacheShared(t *testing.T) {
	t.Parallel()
	const caches, keys, limit = 4, 40, 60_000
	dir := t.TempDir()
	o := &origin{values: map[string][]byte{}}
	for i := range keys {
		o.values[fmt.Sprint(i)] = randomBytes(2000+100*i, byte(i))
	}
	var group sync.WaitGroup
	for n := range caches {
		c := newCache(t, storage.CacheConfig{Dir: dir, MaxBytes: limit})
		for g := range 2 {
			group.Go(func() {
				for round := range 60 {
					o.wantCached(t, c, fmt.Sprint((round*(7+2*n)+11*g)%keys))
					if size := cacheBytes(t, dir); size > limit*3/2 {
						t.Errorf("%d bytes are cached, want at most %d", size, limit*3/2)
					}
				}
			})
		}
	}
	group.Wait()
	if len(cacheFiles(t, dir)) == 0 {
		t.Error("nothing was cached")
	}
}

// TestCacheDoesNotDeleteForeignFiles fills a cache in a directory that also holds foreign files.
func TestCacheDoesNotDeleteForeignFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := time.Now().Add(-24 * time.Hour)
	staleTemp, freshTemp := "ddiff-"+rand.Text(), "ddiff-"+rand.Text()
	for _, name := range []string{"thesis.tex", "temp", staleTemp} {
		must(t, os.WriteFile(filepath.Join(dir, name), make([]byte, 5000), 0o600))
		must(t, os.Chtimes(filepath.Join(dir, name), old, old))
	}
	must(t, os.WriteFile(filepath.Join(dir, freshTemp), nil, 0o600))
	c, o := newCache(t, storage.CacheConfig{Dir: dir, MaxBytes: 1000}), &origin{values: map[string][]byte{}}
	for i := range 20 {
		o.values[fmt.Sprint(i)] = make([]byte, 200)
		o.wantCached(t, c, fmt.Sprint(i))
	}
	for name, want := range map[string]error{
		"thesis.tex": nil, "temp": nil, freshTemp: nil, staleTemp: fs.ErrNotExist,
	} {
		if _, err := os.Stat(filepath.Join(dir, name)); (want == nil) != (err == nil) {
			t.Errorf("stat %s = %v, want %v", name, err, want)
		}
	}
}

// A value that cannot be cached is a warning in the log; a cached one is none.
func TestCacheLogsFailedWrites(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	dir := filepath.Join(t.TempDir(), "cache")
	c := newCache(t, storage.CacheConfig{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	o := &origin{values: map[string][]byte{"k": []byte("x"), "m": []byte("y")}}
	o.wantCached(t, c, "k")
	if log.Len() > 0 {
		t.Errorf("log %q, want nothing", &log)
	}
	must(t, os.RemoveAll(dir))
	must(t, os.WriteFile(dir, nil, 0o600)) // a file in the place of the directory
	if got, err := c.Get(t.Context(), "m", func(context.Context) ([]byte, error) { return []byte("y"), nil }); err != nil || string(got) != "y" {
		t.Errorf("Get = %q, %v", got, err)
	}
	if !strings.Contains(log.String(), "value not cached") {
		t.Errorf("log %q lacks the warning", &log)
	}
}

func TestCacheConfigNamesField(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]storage.CacheConfig{"Dir is missing": {}, "MaxBytes: -1 is negative": {Dir: t.TempDir(), MaxBytes: -1}} {
		if err := c.Validate(); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

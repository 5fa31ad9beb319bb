package storage_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ddiff/storage"
	"ddiff/storage/storagetest"
)

// counting is a store that counts the calls of Get.
type counting struct {
	storage.Store
	gets atomic.Int64
}

func (c *counting) Get(ctx context.Context, key string) ([]byte, error) {
	c.gets.Add(1)
	return c.Store.Get(ctx, key)
}

// clock is a clock that goes on by a second each time that it is read.
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

// newCached returns a cache of dir and the store behind it.
func newCached(t *testing.T, config storage.CacheConfig) (*storage.Cached, *counting) {
	t.Helper()
	store := &counting{Store: storage.NewMemory()}
	cached, err := storage.NewCached(store, config)
	must(t, err)
	return cached, store
}

func TestCachedContract(t *testing.T) {
	t.Parallel()
	t.Run("room for all", func(t *testing.T) {
		storagetest.Run(t, func(t *testing.T) storage.Store {
			s, _ := newCached(t, storage.CacheConfig{Dir: t.TempDir()})
			return s
		})
	})
	t.Run("always full", func(t *testing.T) {
		storagetest.Run(t, func(t *testing.T) storage.Store {
			s, _ := newCached(t, storage.CacheConfig{Dir: t.TempDir(), MaxBytes: 20_000})
			return s
		})
	})
}

func TestCachedReadsOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, store := newCached(t, storage.CacheConfig{Dir: dir})
	data := randomBytes(100_000, 1)
	must(t, s.Create(t.Context(), "k", data))
	for range 3 {
		wantGet(t, s, "k", data)
	}
	if n := store.gets.Load(); n != 1 {
		t.Errorf("%d reads from the store, want 1", n)
	}
	again, err := storage.NewCached(store, storage.CacheConfig{Dir: dir})
	must(t, err)
	wantGet(t, again, "k", data)
	if n := store.gets.Load(); n != 1 {
		t.Errorf("%d reads from the store after reopening the cache, want 1", n)
	}
	other, err := storage.NewCached(storage.NewMemory(), storage.CacheConfig{Dir: dir, Namespace: "another store"})
	must(t, err)
	_, err = other.Get(t.Context(), "k")
	wantError(t, "Get in another namespace", err, storage.ErrNotFound)
}

func TestCachedOnlyImmutable(t *testing.T) {
	t.Parallel()
	s, store := newCached(t, storage.CacheConfig{
		Dir: t.TempDir(), Immutable: func(key string) bool { return strings.HasPrefix(key, "priors/") },
	})
	for _, key := range []string{"priors/p", "report"} {
		must(t, s.Put(t.Context(), key, []byte("old")))
		wantGet(t, s, key, []byte("old"))
		must(t, store.Put(t.Context(), key, []byte("new"))) // behind the cache's back
	}
	wantGet(t, s, "priors/p", []byte("old"))
	wantGet(t, s, "report", []byte("new"))
	must(t, s.Delete(t.Context(), "priors/p"))
	_, err := s.Get(t.Context(), "priors/p")
	wantError(t, "Get after Delete", err, storage.ErrNotFound)
}

// cacheFiles lists the cached objects' files.
func cacheFiles(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, strings.Repeat("[0-9a-f]", 64)))
	must(t, err)
	return names
}

func TestCachedDamagedFiles(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func([]byte) []byte{
		"flipped bit":   func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"flipped label": func(b []byte) []byte { b[len(b)-101] ^= 1; return b },
		"cut":           func(b []byte) []byte { return b[:len(b)-1] },
		"cut in header": func(b []byte) []byte { return b[:20] },
		"empty":         func([]byte) []byte { return nil },
		"longer":        func(b []byte) []byte { return append(b, 0) },
		"text":          func([]byte) []byte { return bytes.Repeat([]byte("text "), 100) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s, store := newCached(t, storage.CacheConfig{Dir: dir})
			data := randomBytes(100, 1)
			must(t, s.Put(t.Context(), "k", data))
			wantGet(t, s, "k", data)
			file := cacheFiles(t, dir)[0]
			content, err := os.ReadFile(file)
			must(t, err)
			must(t, os.WriteFile(file, damage(content), 0o600))
			wantGet(t, s, "k", data)
			wantGet(t, s, "k", data)
			if n := store.gets.Load(); n != 2 {
				t.Errorf("%d reads from the store, want 2", n)
			}
		})
	}
}

// TestCachedFileOfAnotherKey puts one key's file in the place of another's.
func TestCachedFileOfAnotherKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _ := newCached(t, storage.CacheConfig{Dir: dir})
	must(t, s.Put(t.Context(), "a", []byte("A")))
	must(t, s.Put(t.Context(), "b", []byte("B")))
	wantGet(t, s, "a", []byte("A"))
	fileOfA := cacheFiles(t, dir)[0]
	wantGet(t, s, "b", []byte("B"))
	for _, file := range cacheFiles(t, dir) {
		if file != fileOfA {
			must(t, os.Rename(fileOfA, file))
		}
	}
	wantGet(t, s, "b", []byte("B"))
}

// cacheBytes is the size of all files in the cache.
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

func TestCachedForgetsTheLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := randomBytes(1000, 1)
	// Each file is a little larger than 1000 bytes; when full, room for 9 is left.
	clock := &clock{now: time.Now()}
	limit := 10 * storage.CacheFileSize("\x00kNN", data)
	s, store := newCached(t, storage.CacheConfig{Dir: dir, MaxBytes: limit, Now: clock.read})
	key := func(i int) string { return fmt.Sprintf("k%02d", i) }
	for i := range 11 {
		must(t, s.Put(t.Context(), key(i), data))
	}
	for i := range 10 {
		wantGet(t, s, key(i), data)
	}
	wantGet(t, s, key(0), data) // now k01 and k02 are the oldest
	if n := store.gets.Load(); n != 10 {
		t.Fatalf("%d reads from the store, want 10", n)
	}
	wantGet(t, s, key(10), data)
	if size := cacheBytes(t, dir); size != limit/10*9 {
		t.Errorf("%d bytes are cached, want %d", size, limit/10*9)
	}
	before := store.gets.Load()
	for _, i := range []int{0, 3, 9, 10} {
		wantGet(t, s, key(i), data)
	}
	if n := store.gets.Load() - before; n != 0 {
		t.Errorf("%d of the recently used objects were forgotten", n)
	}
	wantGet(t, s, key(1), data)
	wantGet(t, s, key(2), data)
	if n := store.gets.Load() - before; n != 2 {
		t.Errorf("%d of the 2 oldest objects were forgotten", n)
	}
}

func TestCachedTooLargeToKeep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, store := newCached(t, storage.CacheConfig{Dir: dir, MaxBytes: 1000})
	for _, size := range []int{1000, 940, 100} {
		key := fmt.Sprint(size)
		must(t, s.Put(t.Context(), key, make([]byte, size)))
		wantGet(t, s, key, make([]byte, size))
		if got := cacheBytes(t, dir); got > 1000 {
			t.Errorf("%d bytes are cached, at most 1000 are allowed", got)
		}
	}
	before := store.gets.Load()
	wantGet(t, s, "1000", make([]byte, 1000))
	wantGet(t, s, "100", make([]byte, 100))
	if n := store.gets.Load() - before; n != 1 {
		t.Errorf("%d reads from the store, want 1", n)
	}
}

// TestCachedShared has several caches, which lock each other out as processes do, use one
// directory at once; none may go above the limit or serve other bytes.
func TestCachedShared(t *testing.T) {
	t.Parallel()
	const caches, keys, limit = 4, 40, 60_000
	dir := t.TempDir()
	store := storage.NewMemory()
	value := func(i int) []byte { return randomBytes(2000+100*i, byte(i)) }
	for i := range keys {
		must(t, store.Put(t.Context(), fmt.Sprint(i), value(i)))
	}
	var group sync.WaitGroup
	for c := range caches {
		s, err := storage.NewCached(store, storage.CacheConfig{Dir: dir, MaxBytes: limit})
		must(t, err)
		for g := range 2 {
			group.Go(func() {
				for round := range 60 {
					i := (round*(7+2*c) + 11*g) % keys
					got, err := s.Get(t.Context(), fmt.Sprint(i))
					if err != nil || !bytes.Equal(got, value(i)) {
						t.Errorf("Get(%d) gives %d other bytes, %v", i, len(got), err)
					}
					if size := cacheBytes(t, dir); size > limit {
						t.Errorf("%d bytes are cached, at most %d are allowed", size, limit)
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

// TestCachedWhileAnotherProcessIsStopped holds the lock for ever.
func TestCachedWhileAnotherProcessIsStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, store := newCached(t, storage.CacheConfig{Dir: dir})
	must(t, s.Put(t.Context(), "k", []byte("x")))
	lock, err := os.OpenFile(filepath.Join(dir, storage.CacheLedgerName), os.O_RDWR, 0)
	must(t, err)
	must(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	wantGet(t, s, "k", []byte("x"))
	_, err = storage.NewCached(store, storage.CacheConfig{Dir: dir})
	must(t, err)
	must(t, lock.Close())
	wantGet(t, s, "k", []byte("x"))
	wantGet(t, s, "k", []byte("x"))
	if n := store.gets.Load(); n != 2 {
		t.Errorf("%d reads from the store, want 2", n)
	}
}

// TestCachedOwnsOnlyItsFiles opens a full cache in a directory with files of others.
func TestCachedOwnsOnlyItsFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := time.Now().Add(-24 * time.Hour)
	for _, name := range []string{"thesis.tex", "temp", "ddiff-temp-stale"} {
		must(t, os.WriteFile(filepath.Join(dir, name), make([]byte, 5000), 0o600))
		must(t, os.Chtimes(filepath.Join(dir, name), old, old))
	}
	must(t, os.WriteFile(filepath.Join(dir, "ddiff-temp-fresh"), nil, 0o600))
	s, _ := newCached(t, storage.CacheConfig{Dir: dir, MaxBytes: 1000})
	for i := range 20 {
		must(t, s.Put(t.Context(), fmt.Sprint(i), make([]byte, 200)))
		wantGet(t, s, fmt.Sprint(i), make([]byte, 200))
	}
	for name, want := range map[string]error{
		"thesis.tex": nil, "temp": nil, "ddiff-temp-fresh": nil, "ddiff-temp-stale": fs.ErrNotExist,
	} {
		if _, err := os.Stat(filepath.Join(dir, name)); (want == nil) != (err == nil) {
			t.Errorf("stat %s = %v, want %v", name, err, want)
		}
	}
}

// TestCachedGoesOnWithoutItsDirectory removes the cache under an open one.
func TestCachedGoesOnWithoutItsDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache")
	s, _ := newCached(t, storage.CacheConfig{Dir: dir})
	must(t, s.Put(t.Context(), "k", []byte("x")))
	must(t, os.RemoveAll(dir))
	wantGet(t, s, "k", []byte("x"))
}

func TestCacheConfigValidateNamesTheField(t *testing.T) {
	t.Parallel()
	for field, config := range map[string]storage.CacheConfig{
		"Dir": {}, "MaxBytes": {Dir: "d", MaxBytes: -1},
	} {
		_, err := storage.NewCached(storage.NewMemory(), config)
		if err == nil || !strings.Contains(err.Error(), "field "+field+":") {
			t.Errorf("NewCached = %v, want an error about %s", err, field)
		}
	}
}

func FuzzDecodeCacheFile(f *testing.F) {
	file, err := storage.WriteCacheFile(f.TempDir(), "label", []byte("data"))
	if err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:50])
	f.Fuzz(func(t *testing.T, content []byte) {
		data, err := storage.DecodeCacheFile(content, "label")
		if err == nil && (!bytes.Equal(content, whole) && len(data) >= len(content) || !bytes.HasSuffix(content, data)) {
			t.Errorf("decoded %q from %q", data, content)
		}
	})
}

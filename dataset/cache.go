package dataset

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"ddiff/storage"
)

// cache keeps what was read from other machines, and what is costly to find out, on the local
// disk. Its keys hold the version of the object, so that what it gives is never stale, at the
// price of asking the server for the version.
type cache struct {
	sources *Sources
	files   *storage.Cached
}

// cacheKey names what is kept. As JSON it is the key of the store.
type cacheKey struct {
	Kind    string `json:"k"` // file or index
	Address string `json:"a"`
	Version string `json:"v"`
	Offset  int64  `json:"o,omitempty"` // of an index: where it begins
}

const (
	kindFile  = "f"
	kindIndex = "i"
)

// newCache opens the cache, or gives nil where nothing is to be kept or can be: reading goes
// on without.
func newCache(s *Sources) *cache {
	if s.cfg.CacheBytes < 0 {
		return nil
	}
	files, err := storage.NewCached(origin{Memory: storage.NewMemory(), sources: s}, storage.CacheConfig{
		Dir: s.cfg.CacheDir, MaxBytes: s.cfg.CacheBytes, Namespace: "dataset 1", Logger: s.cfg.Logger,
	})
	if err != nil {
		s.cfg.Logger.Warn("keeps nothing of the dataset on this machine", "reason", err)
		return nil
	}
	return &cache{sources: s, files: files}
}

// key is a valid key of a store, or "" when it would be too long.
func (k cacheKey) key() string {
	const element = 200
	raw, err := json.Marshal(k)
	if err != nil {
		return ""
	}
	text := base64.RawURLEncoding.EncodeToString(raw)
	var b strings.Builder
	for len(text) > element {
		b.WriteString(text[:element] + "/")
		text = text[element:]
	}
	b.WriteString(text)
	if storage.CheckKey(b.String()) != nil {
		return ""
	}
	return b.String()
}

// get reads an address through the cache. What has no version is not kept.
func (c *cache) get(ctx context.Context, a Address) ([]byte, error) {
	version, err := c.sources.version(ctx, a)
	if err != nil {
		return nil, err
	}
	key := cacheKey{Kind: kindFile, Address: a.String(), Version: version}.key()
	if version == "" || key == "" {
		return c.sources.read(ctx, a)
	}
	return c.files.Get(ctx, key)
}

// version asks for the version of an address's object; empty when it has none.
func (s *Sources) version(ctx context.Context, a Address) (string, error) {
	if a.scheme == schemeHTTPS || a.scheme == schemeHTTP {
		response, err := s.web.request(ctx, http.MethodHead, a, 0, 0, "")
		if errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
			return "", err
		}
		if err != nil {
			return "", nil //nolint:nilerr // a server may know GET only
		}
		response.Body.Close() // it has none
		if etag := strongETag(response); etag != "" {
			return fmt.Sprintf("%d-%s", response.ContentLength, etag), nil
		}
		return "", nil
	}
	obj, err := s.open(ctx, a)
	if err != nil {
		return "", err
	}
	return obj.version(), obj.close()
}

// origin is the store behind the cache: it reads what a key names. Its other methods are
// those of an empty store.
type origin struct {
	*storage.Memory
	sources *Sources
}

// Get implements storage.Store.
func (o origin) Get(ctx context.Context, key string) ([]byte, error) {
	raw, err := base64.RawURLEncoding.DecodeString(strings.ReplaceAll(key, "/", ""))
	if err != nil {
		return nil, err
	}
	var k cacheKey
	if err := json.Unmarshal(raw, &k); err != nil {
		return nil, err
	}
	a, err := Parse(k.Address)
	if err != nil {
		return nil, err
	}
	if k.Kind == kindIndex {
		return o.sources.makeIndex(ctx, a, k)
	}
	return o.sources.read(ctx, a)
}

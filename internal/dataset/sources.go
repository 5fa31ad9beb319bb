package dataset

import (
	"context"
	"fmt"
	"sync"

	"ddiff/internal/regular"
	"ddiff/manifest"
	"ddiff/storage"
)

// Sources reads the rows of datasets and the files of the rows. New returns one. All methods are safe for concurrent
// use.
type Sources struct {
	cfg     Config
	buckets *buckets
	web     *web
	// cache opens the cache at its first use, since local files need none. It returns nil without one.
	cache func() *storage.Cache
}

// New checks the configuration. It opens no connection.
func New(cfg Config) (*Sources, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure dataset sources: %w", err)
	}
	cfg = cfg.withDefaults()
	s := &Sources{cfg: cfg, buckets: &buckets{cfg: cfg, guard: guard{networks: cfg.Networks, http: cfg.AllowHTTP}, known: map[string]*bucket{}}}
	var err error
	if s.web, err = newWeb(cfg); err != nil {
		return nil, fmt.Errorf("configure dataset sources: %w", err)
	}
	s.cache = sync.OnceValue(func() *storage.Cache { return newCache(cfg) })
	return s, nil
}

// Close closes idle connections. Later calls open new connections.
func (s *Sources) Close() {
	s.buckets.close()
	s.web.close()
}

// Get returns the bytes at an address, see [Address]. Its errors wrap the sentinels of this package, of which only
// ErrUnavailable is transient.
func (s *Sources) Get(ctx context.Context, path string) ([]byte, error) {
	a, err := Parse(path)
	if err != nil {
		return nil, err
	}
	if err := s.allowed(a); err != nil {
		return nil, err
	}
	if a.local() && a.part != partCell {
		return s.read(ctx, a)
	}
	call, cancel := context.WithTimeout(ctx, s.cfg.ObjectTimeout)
	defer cancel()
	data, err := s.load(call, a)
	if err != nil && call.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%w: not read within %v", ErrUnavailable, s.cfg.ObjectTimeout)
	}
	return data, err
}

// load returns the bytes at an address from the cache or from their source.
func (s *Sources) load(ctx context.Context, a Address) ([]byte, error) {
	load := func(ctx context.Context) ([]byte, error) { return s.read(ctx, a) }
	if s.cache() == nil {
		return load(ctx)
	}
	version, err := s.version(ctx, a)
	if err != nil {
		return nil, err
	}
	return s.cached(ctx, kindFile, a, version, 0, load)
}

// read reads the bytes at an address from their source, if their beginning passes the check.
func (s *Sources) read(ctx context.Context, a Address) ([]byte, error) {
	check := s.check(a)
	switch {
	case a.part == partMember:
		return s.readMember(ctx, a, check)
	case a.part == partCell:
		return s.readCell(ctx, a, check)
	case a.scheme == schemeFile:
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		data, err := regular.ReadChecked(a.file, manifest.MaxFileBytes, check)
		return data, fileError(err)
	case a.scheme == schemeS3:
		return s.buckets.get(ctx, a, check)
	default:
		return s.web.get(ctx, a, check)
	}
}

func (s *Sources) readMember(ctx context.Context, a Address, check Check) ([]byte, error) {
	if a.size > s.cfg.MaxBytes {
		return nil, s.tooLarge(a.size)
	}
	if a.size > checkedApart {
		beginning, err := s.readPart(ctx, a, regular.BeginningBytes)
		if err == nil {
			err = check(beginning, a.size)
		}
		if err != nil {
			return nil, err
		}
	}
	data, err := s.readPart(ctx, a, a.size)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != a.size {
		return nil, fmt.Errorf("%w: shard ends before the member", ErrChanged)
	}
	return data, check(beginningOf(data), a.size)
}

// readPart reads the first size bytes of a member, fewer only at the end of the tar file.
func (s *Sources) readPart(ctx context.Context, a Address, size int64) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	var obj object
	var err error
	switch a.scheme {
	case schemeFile:
		obj, err = openFile(a.file)
	case schemeS3: // without a request for the version
		return s.buckets.part(ctx, a, size)
	default:
		obj, err = s.web.open(ctx, a, a.offset, size)
	}
	if err != nil {
		return nil, err
	}
	defer obj.close() //nolint:errcheck // opened for reading
	return obj.readRange(ctx, a.offset, size)
}

func (s *Sources) tooLarge(size int64) error {
	return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, size, s.cfg.MaxBytes)
}

// allowed checks the text of an address against the configuration.
func (s *Sources) allowed(a Address) error {
	switch a.scheme {
	case schemeFile:
		return nil
	case schemeS3:
		_, err := s.buckets.config(a)
		return err
	default:
		return s.web.guard.checkURL(a.url)
	}
}

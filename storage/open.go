package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// Options configures Open. The zero value opens a store that other processes may share.
type Options struct {
	// Lock locks a directory against other processes until Close, see AcquireLock. Object
	// stores ignore it: Create lets exactly one of several processes win.
	Lock bool
	// ReadOnly opens an existing store and writes nothing. A missing directory is fs.ErrNotExist.
	ReadOnly bool
	// MaxBytes limits the size of an object; 0 means DefaultMaxBytes.
	MaxBytes int64
	// Logger gets a warning for each retried call; nil means none.
	Logger *slog.Logger
	// Skipped, if not nil, is called with each name in a bucket that a listing skips because it is no valid key.
	Skipped func(name string)
}

// Opened is a store that Open opened. Close it after use.
type Opened struct {
	// Store is safe for concurrent use.
	Store Store
	close func() error
}

// Close releases the lock and the idle connections of the store.
func (o *Opened) Close() error { return o.close() }

var addressScheme = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://`)

// schemeOf returns the scheme of an address, empty for a path. The error wraps ErrAddress and does not repeat the
// address, which may hold a password.
func schemeOf(address string) (string, error) {
	if address == "" {
		return "", fmt.Errorf("%w: address is empty; use a directory or s3://bucket/prefix", ErrAddress)
	}
	match := addressScheme.FindStringSubmatch(address)
	if match == nil {
		return "", nil
	}
	scheme := strings.ToLower(match[1])
	if scheme != "file" && scheme != "s3" {
		return "", fmt.Errorf("%w: scheme %q is not supported; use a directory, file:// or s3://", ErrAddress, scheme+"://")
	}
	return scheme, nil
}

// Open opens the store at an address: a directory, file:///PATH, or s3://bucket/prefix with the query of ParseS3URL. It
// creates a missing directory. An S3 store limits concurrent calls and retries those that failed with ErrUnavailable.
//
// The error wraps ErrAddress, ErrLocked, a sentinel of NewDir or a sentinel of OpenS3.
func Open(ctx context.Context, address string, o Options) (*Opened, error) {
	scheme, err := schemeOf(address)
	switch {
	case err != nil:
		return nil, err
	case scheme == "s3":
		return openS3URL(ctx, address, o)
	case scheme == "file":
		u, err := url.Parse(address)
		if err != nil || u.Host != "" || u.RawQuery != "" || u.Fragment != "" || !filepath.IsAbs(u.Path) {
			return nil, fmt.Errorf("%w: want file:///PATH", ErrAddress)
		}
		address = u.Path
	}
	return openDir(address, o)
}

// Absolute returns an address that means the same store from every working directory. The
// error wraps ErrAddress for an unsupported scheme.
func Absolute(address string) (string, error) {
	scheme, err := schemeOf(address)
	if err != nil {
		return "", err
	}
	if scheme != "" {
		return address, nil
	}
	return filepath.Abs(address)
}

// Locate returns the path or URL of an object of the store at an address, for people.
func Locate(address, key string) string {
	scheme, err := schemeOf(address)
	switch {
	case err != nil:
		return key
	case scheme == "":
		return filepath.Join(address, filepath.FromSlash(key))
	}
	base, query, found := strings.Cut(address, "?")
	base = strings.TrimSuffix(base, "/") + "/" + key
	if found {
		base += "?" + query
	}
	return base
}

func openDir(path string, o Options) (*Opened, error) {
	if o.ReadOnly {
		switch _, err := os.Stat(path); {
		case errors.Is(err, syscall.ENOTDIR):
			return nil, fmt.Errorf("open store %s: %w: %w", path, ErrAddress, err)
		case err != nil:
			return nil, fmt.Errorf("open store %s: %w", path, pathError(err))
		}
	}
	dir, err := NewDir(path)
	if err != nil {
		return nil, err
	}
	dir.MaxBytes = o.MaxBytes
	if !o.Lock {
		return &Opened{Store: dir, close: func() error { return nil }}, nil
	}
	lock, err := AcquireLock(path)
	if err != nil {
		return nil, err
	}
	return &Opened{Store: dir, close: lock.Unlock}, nil
}

func openS3URL(ctx context.Context, address string, o Options) (*Opened, error) {
	config, err := ParseS3URL(address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAddress, err)
	}
	config.ReadOnly, config.MaxBytes, config.Skipped = config.ReadOnly || o.ReadOnly, o.MaxBytes, o.Skipped
	config.Retry.Logger = o.Logger
	s3, err := OpenS3(ctx, config)
	if err != nil {
		return nil, err
	}
	return &Opened{Store: s3, close: func() error { s3.Close(); return nil }}, nil
}

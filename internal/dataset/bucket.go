package dataset

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"ddiff/internal/redact"
	"ddiff/internal/regular"
	"ddiff/storage"
)

const maxBuckets = 32

// buckets opens each bucket once.
type buckets struct {
	cfg   Config
	guard guard // of endpoints that addresses name

	mu    sync.Mutex
	known map[string]*bucket
}

// bucket is one bucket of one server; store is nil until the bucket is open.
type bucket struct {
	mu    sync.Mutex
	store *storage.S3
}

func (b *buckets) config(a Address) (storage.S3Config, error) {
	u := *a.url
	u.Path, u.RawPath = "", ""
	named, err := storage.ParseS3URL(u.String())
	if err != nil {
		return named, fmt.Errorf("%w: %w", ErrAddress, err)
	}
	c := b.cfg.S3
	c.Bucket, c.Prefix, c.ReadOnly, c.AnyKey, c.MaxBytes = named.Bucket, "", true, true, b.cfg.MaxBytes
	c.Endpoint, c.Region = cmp.Or(named.Endpoint, c.Endpoint), cmp.Or(named.Region, c.Region)
	c.CAFile, c.Addressing = cmp.Or(named.CAFile, c.CAFile), cmp.Or(named.Addressing, c.Addressing)
	c.Timeout, c.Retry = cmp.Or(c.Timeout, b.cfg.Timeout), b.cfg.Retry
	if b.trusts(named.Endpoint) {
		return c, nil
	}
	if b.cfg.Endpoints != nil {
		return c, fmt.Errorf("%w: S3 endpoint %q is not allowed; allow it with --allow-endpoint", ErrRefused, redact.Address(named.Endpoint))
	}
	c.Control = b.guard.control
	return c, b.checkEndpoint(named.Endpoint)
}

// trusts reports whether the configuration or the environment names an endpoint. Such endpoints may be on any network.
func (b *buckets) trusts(endpoint string) bool {
	own := []string{"", b.cfg.S3.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), storage.DefaultS3Endpoint}
	return slices.Contains(own, endpoint) || slices.Contains(b.cfg.Endpoints, endpoint) || slices.Contains(b.cfg.OwnEndpoints, endpoint)
}

// checkEndpoint applies the rules for web servers to an endpoint that an address names, except for the names of hosts.
func (b *buckets) checkEndpoint(endpoint string) error {
	if !strings.Contains(endpoint, "://") {
		endpoint = schemeHTTPS + "://" + endpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return fmt.Errorf("%w: S3 endpoint is not a URL", ErrAddress)
	}
	if err := b.guard.checkURL(u); err != nil {
		return fmt.Errorf("S3 endpoint %s: %w, or the endpoint with --allow-endpoint", redact.Address(endpoint), err)
	}
	return nil
}

func (b *buckets) open(ctx context.Context, a Address) (*storage.S3, error) {
	config, err := b.config(a)
	if err != nil {
		return nil, err
	}
	u := *a.url
	u.Path, u.RawPath = "", ""
	entry := b.entry(u.String())
	entry.mu.Lock()
	defer entry.mu.Unlock()
	if entry.store != nil {
		return entry.store, nil
	}
	store, err := retryRead(ctx, b.cfg.Attempts, storage.ErrUnavailable, func() (*storage.S3, error) { return storage.OpenS3(ctx, config) })
	if err != nil {
		return nil, storageError(err)
	}
	entry.store = store
	return store, nil
}

func (b *buckets) entry(name string) *bucket {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.known[name]; e != nil {
		return e
	}
	if len(b.known) >= maxBuckets {
		for other, e := range b.known {
			delete(b.known, other)
			e.close()
			break
		}
	}
	e := &bucket{}
	b.known[name] = e
	return e
}

// close closes idle connections. Calls in flight continue.
func (b *buckets) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, e := range b.known {
		delete(b.known, name)
		e.close()
	}
}

func (e *bucket) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.store != nil {
		e.store.Close()
	}
}

func (b *buckets) get(ctx context.Context, a Address, check Check) ([]byte, error) {
	store, err := b.open(ctx, a)
	if err != nil {
		return nil, err
	}
	data, err := store.GetChecked(ctx, a.key(), regular.BeginningBytes, check)
	return data, storageError(err)
}

func (b *buckets) part(ctx context.Context, a Address, size int64) ([]byte, error) {
	store, err := b.open(ctx, a)
	if err != nil {
		return nil, err
	}
	data, err := store.GetRange(ctx, a.key(), "", a.offset, size)
	return data, storageError(err)
}

func (b *buckets) object(ctx context.Context, a Address) (object, error) {
	store, err := b.open(ctx, a)
	if err != nil {
		return nil, err
	}
	info, err := store.Stat(ctx, a.key())
	if err != nil {
		return nil, storageError(err)
	}
	return &bucketObject{store, info}, nil
}

// bucketObject is one version of an object in a bucket.
type bucketObject struct {
	store *storage.S3
	info  storage.Info
}

func (o *bucketObject) readRange(ctx context.Context, offset, size int64) ([]byte, error) {
	data, err := o.store.GetRange(ctx, o.info.Key, o.info.ETag, offset, size)
	return data, storageError(err)
}

func (o *bucketObject) length() int64 { return o.info.Size }

func (o *bucketObject) version() string { return sizedVersion(o.info.Size, o.info.ETag) }

func (*bucketObject) close() error { return nil }

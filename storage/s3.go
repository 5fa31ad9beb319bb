package storage

import (
	"context"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/semaphore"
)

// S3 is a store in a bucket of an S3 server. OpenS3 opens it. Any number of processes may share a bucket and prefix.
//
// A write is one PUT request, so an object appears whole or not at all. Create is a PUT with "If-None-Match: *". Both
// send a SHA-256, which the server verifies as part of the signature and stores as metadata. Get verifies it.
//
// At most 64 requests are in flight; a listing holds no slot between its pages. A call is retried while it fails with
// ErrUnavailable, see S3Config.Retry. All attempts of a Create count as one call: if the server wrote the object and the
// answer was lost, the next attempt succeeds instead of returning ErrExists. An attempt at a Put whose answer was lost
// may take effect after a later Put of another caller.
type S3 struct {
	core      *minio.Core
	transport *http.Transport
	endpoint  string
	bucket    string
	prefix    string // empty or with a trailing slash
	maxBytes  int64
	timeout   time.Duration
	readOnly  bool
	anyKey    bool
	pageSize  int
	skipped   func(name string)
	slots     *semaphore.Weighted // of requests in flight
	retry     RetryConfig
}

var _ Store = (*S3)(nil)

const (
	listPageSize = 1000
	// maxRequests limits the concurrent requests; further requests wait.
	maxRequests = 64
)

// OpenS3 connects to a store. It checks that the bucket exists, that the credentials permit access, and, unless
// ReadOnly is set, that the server honours conditional writes: it creates a small object below ".ddiff/" twice and
// deletes it.
//
// The error wraps ErrNoBucket, ErrAccess, ErrReadOnly, ErrCertificate, ErrUnavailable or ErrNoConditionalWrites, or
// names the invalid field of config.
func OpenS3(ctx context.Context, config S3Config) (*S3, error) {
	config = config.withDefaults()
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("open s3 store: %w", err)
	}
	core, transport, err := newClient(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open s3 store: %w", err)
	}
	s := &S3{
		core: core, transport: transport, endpoint: core.EndpointURL().String(),
		bucket: config.Bucket, maxBytes: config.MaxBytes, timeout: config.Timeout,
		readOnly: config.ReadOnly, anyKey: config.AnyKey, pageSize: listPageSize, skipped: config.Skipped,
		slots: semaphore.NewWeighted(maxRequests), retry: config.Retry,
	}
	if config.Prefix != "" {
		s.prefix = config.Prefix + "/"
	}
	err = s.checkBucket(ctx)
	if err == nil && !s.readOnly {
		err = s.probe(ctx)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("open %s: %w", s, err)
	}
	return s, nil
}

// String returns bucket, prefix and endpoint, without credentials.
func (s *S3) String() string {
	return fmt.Sprintf("s3://%s/%s at %s", s.bucket, s.prefix, s.endpoint)
}

// Close closes idle connections. Later calls open new connections.
func (s *S3) Close() { s.transport.CloseIdleConnections() }

func (s *S3) name(key string) string { return s.prefix + key }

// begin checks the key and the context at the beginning of a method.
func (s *S3) begin(ctx context.Context, action, key string) error {
	if !s.anyKey {
		return begin(ctx, action, key)
	}
	if err := checkName(key); err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: %w", action, key, err)
	}
	return nil
}

// checkName returns nil if S3 permits a name of an object. The error wraps ErrBadKey.
func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: name is empty", ErrBadKey)
	case len(name) > MaxS3NameBytes:
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrBadKey, len(name), MaxS3NameBytes)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w %q: not UTF-8", ErrBadKey, name)
	}
	return nil
}

// limit returns a context with the time limit of a request that transfers size bytes.
func (s *S3) limit(ctx context.Context, size int64) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.budget(size))
}

// budget returns the time limit of a request that transfers size bytes.
func (s *S3) budget(size int64) time.Duration {
	return s.timeout + time.Duration(size>>20)*time.Second
}

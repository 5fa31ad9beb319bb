package storage

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"
)

// S3 is a store in a bucket of an S3 server. OpenS3 makes one. Any number of processes may
// use one bucket and prefix at once.
//
// An object is one PUT, so it appears whole or not at all, and Create is a PUT with
// "If-None-Match: *". Both send the SHA-256 of the bytes, which the server checks by the
// signature, and a CRC-32C, which it checks and keeps if it knows how; the SHA-256 is also
// kept as metadata, and Get checks whatever of these comes back.
//
// A call is one request and is never repeated, except that Create goes on after a conflict
// with another writer. Put a Retrying around an S3 store: it repeats what failed with
// ErrUnavailable, and makes a Create whose first answer was lost end well.
type S3 struct {
	core      *minio.Core
	transport *http.Transport
	endpoint  string
	bucket    string
	prefix    string // empty or with a slash at its end
	maxBytes  int64
	timeout   time.Duration
	readOnly  bool
	pageSize  int
}

var _ Store = (*S3)(nil)

// listPageSize is the number of objects that a server lists in one answer.
const listPageSize = 1000

// OpenS3 connects to the store that config describes. It checks that the bucket exists and
// that the credentials may use it, and, unless ReadOnly is set, that the server honours
// conditional writes. For that it writes one small object below ".ddiff/", twice, and
// deletes it.
//
// The error wraps ErrNoBucket, ErrAccess, ErrReadOnly, ErrCertificate, ErrUnavailable or
// ErrNoConditionalWrites, or names the field of config that is wrong.
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
		readOnly: config.ReadOnly, pageSize: listPageSize,
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

// String describes the store without its credentials: its bucket, prefix and endpoint.
func (s *S3) String() string {
	return fmt.Sprintf("s3://%s/%s at %s", s.bucket, s.prefix, s.endpoint)
}

// Close closes the connections that are idle. Calls may go on and will open new ones.
func (s *S3) Close() { s.transport.CloseIdleConnections() }

// name is the key's name in the bucket.
func (s *S3) name(key string) string { return s.prefix + key }

// limit bounds one request that moves size bytes.
func (s *S3) limit(ctx context.Context, size int64) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.budget(size))
}

// budget is how long a request may take that moves size bytes.
func (s *S3) budget(size int64) time.Duration {
	return s.timeout + time.Duration(size>>20)*time.Second
}

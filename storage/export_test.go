package storage

import (
	"bytes"
	"context"
	"net"
)

// WithDial returns the configuration with another dialer.
func (c S3Config) WithDial(dial func(ctx context.Context, network, address string) (net.Conn, error)) S3Config {
	c.dial = dial
	return c
}

// The parts of a cached file, for its fuzz test.
var (
	WriteCacheFile  = writeCacheFile
	DecodeCacheFile = decodeCacheFile
	CacheFileSize   = cacheFileSize
)

// CacheLedgerName is the file that a process locks while it changes a cache.
const CacheLedgerName = cacheLedgerName

// UploadBody is the body of a PUT request.
type UploadBody struct{ *uploadBody }

// NewUploadBody returns a body of the given bytes.
func NewUploadBody(data []byte) UploadBody {
	return UploadBody{&uploadBody{reader: bytes.NewReader(data)}}
}

// Release ends its use.
func (b UploadBody) Release() { b.release() }

// SetPageSize sets the number of objects in one answer to a listing.
func SetPageSize(s *S3, n int) { s.pageSize = n }

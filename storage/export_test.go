package storage

import (
	"context"
	"net"
	"os"

	"golang.org/x/sync/semaphore"
)

// WithDial returns the configuration with another dialer.
func (c S3Config) WithDial(dial func(ctx context.Context, network, address string) (net.Conn, error)) S3Config {
	c.dial = dial
	return c
}

// SetPageSize sets the number of objects in one answer to a listing.
func SetPageSize(s *S3, n int) { s.pageSize = n }

// The parts of a write to a directory, and of the configuration of S3.
var (
	WriteError = writeError
	QueryRole  = queryRole
)

// SetRequests sets the number of concurrent requests.
func SetRequests(s *S3, n int64) { s.slots = semaphore.NewWeighted(n) }

// PutAfter is Put that calls swept once the temporary file is written.
func PutAfter(ctx context.Context, d *Dir, key string, data []byte, swept func()) error {
	return d.write(ctx, "put", key, data, func(root *os.Root, temp, key string) error {
		swept()
		return rename(root, temp, key)
	})
}

package storage

import (
	"context"
	"iter"
	"net"

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
	MakeDirs   = makeDirs
	SyncDir    = syncDir
	WriteError = writeError
	QueryRole  = queryRole
)

// SetRequests sets the number of concurrent requests.
func SetRequests(s *S3, n int64) { s.slots = semaphore.NewWeighted(n) }

// Around is a store whose calls, except List, run through a function.
type Around struct{ around }

// NewAround wraps a store. do gets the call and its key.
func NewAround(s Store, do func(ctx context.Context, key string, call func(context.Context, string) error) error) *Around {
	return &Around{around{s, func(ctx context.Context, o *operation) error { return do(ctx, o.key, o.run) }}}
}

// List implements Store.
func (a *Around) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return a.store.List(ctx, prefix)
}

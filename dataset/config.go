package dataset

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ddiff/storage"
)

// The defaults of Config.
const (
	DefaultMaxBytes   int64 = 256 << 20
	DefaultSpoolBytes int64 = 8 << 30
	DefaultAttempts         = 4
	DefaultTimeout          = 30 * time.Second
)

// Config says from where datasets may be read, and how. The zero value is good: it reads
// local files, S3 with the usual credentials, and public https servers.
type Config struct {
	// S3 is how buckets are reached, for what an address does not say itself: Endpoint,
	// Region, Addressing, CAFile, keys and Timeout. Bucket and Prefix are those of the
	// address. The zero value means the environment, see storage.S3Config.
	S3 storage.S3Config
	// Endpoints are the S3 endpoints that an address may name in its query. Nil means any:
	// right for a person who writes the campaign, too much for a service that runs the
	// campaigns of others, since requests there are signed with the service's keys. The
	// endpoint of S3 and of the environment is always allowed.
	Endpoints []string

	// Hosts are the web servers that may be read: "example.org", or "*.example.org" for all
	// below it. Nil means every public one.
	Hosts []string
	// Networks may be reached besides public addresses, as in 10.0.0.0/8. Without it no
	// private, loopback, link-local or otherwise special address is connected to, whatever
	// name, redirect or DNS answer leads there.
	Networks []netip.Prefix
	// Proxy sends web requests through the proxy of HTTPS_PROXY and the like. The proxy then
	// decides what can be reached, and must itself be in Networks if it is private.
	Proxy bool
	// AllowHTTP also reads http://, which anybody on the way can read and change.
	AllowHTTP bool
	// CAFile is a PEM file of authorities that are trusted for web servers besides the
	// system's.
	CAFile string

	// MaxBytes is the largest file that is read whole, besides files of this machine, whose
	// limit is manifest.MaxFileBytes. It bounds members of tar files and cells and pages of
	// Parquet files too. 0 means DefaultMaxBytes.
	MaxBytes int64
	// SpoolBytes is the largest list, shard or Parquet file that is copied to CacheDir because
	// its server cannot send parts. 0 means DefaultSpoolBytes.
	SpoolBytes int64
	// Timeout limits the wait for an answer; transferring the bytes has one more second per
	// MiB. 0 means DefaultTimeout.
	Timeout time.Duration
	// Attempts is how often a request is made at most. 0 means DefaultAttempts.
	Attempts int

	// CacheDir keeps what was read from buckets and web servers, and the indexes of tar
	// files. Several processes may share it. Empty means ddiff/dataset in the user's cache
	// directory.
	CacheDir string
	// CacheBytes is the size of the cache; 0 means storage.DefaultCacheBytes. Negative means
	// that nothing is kept.
	CacheBytes int64

	// Logger gets a warning for every repeated request; nil means none.
	Logger *slog.Logger
	// Retry says how requests to S3 are repeated; its Attempts and Logger default to those
	// here.
	Retry storage.RetryConfig
}

// Validate reports the first field that is wrong, by name.
func (c Config) Validate() error {
	switch {
	case c.MaxBytes < 0:
		return fmt.Errorf("field MaxBytes: %d is negative", c.MaxBytes)
	case c.SpoolBytes < 0:
		return fmt.Errorf("field SpoolBytes: %d is negative", c.SpoolBytes)
	case c.Timeout < 0:
		return fmt.Errorf("field Timeout: %v is negative", c.Timeout)
	case c.Attempts < 0:
		return fmt.Errorf("field Attempts: %d is negative", c.Attempts)
	}
	for _, host := range c.Hosts {
		if name := strings.TrimPrefix(host, "*."); name == "" || strings.ContainsAny(name, "*/@ ") {
			return fmt.Errorf("field Hosts: %q is no host; write example.org or *.example.org", host)
		}
	}
	for _, network := range c.Networks {
		if !network.IsValid() {
			return fmt.Errorf("field Networks: %v is no network; write 10.0.0.0/8", network)
		}
	}
	if err := c.Retry.Validate(); err != nil {
		return fmt.Errorf("field Retry: %w", err)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.MaxBytes == 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	if c.SpoolBytes == 0 {
		c.SpoolBytes = DefaultSpoolBytes
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Attempts == 0 {
		c.Attempts = DefaultAttempts
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Retry.Attempts == 0 {
		c.Retry.Attempts = c.Attempts
	}
	if c.Retry.Logger == nil {
		c.Retry.Logger = c.Logger
	}
	if c.CacheDir == "" {
		if cache, err := os.UserCacheDir(); err == nil {
			c.CacheDir = filepath.Join(cache, "ddiff", "dataset")
		} else {
			c.CacheDir, c.CacheBytes = os.TempDir(), -1 // what is spooled has names of its own
		}
	}
	return c
}

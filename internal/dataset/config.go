package dataset

import (
	"cmp"
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
	DefaultMaxBytes int64 = 256 << 20
	DefaultAttempts       = 4
	DefaultTimeout        = 30 * time.Second
)

// Config configures Sources. The zero value reads local files, S3 with the credentials of the environment, and public
// https servers.
type Config struct {
	// S3 has the defaults of the parameters of an S3 address: Endpoint, Region, Addressing, CAFile, keys and
	// Timeout. Bucket and Prefix are not used. The zero value means the environment, see storage.S3Config.
	S3 storage.S3Config
	// Endpoints are the S3 endpoints that an address may name in its query, on any network. Nil allows all endpoints that
	// Networks and AllowHTTP permit for web servers. A service that runs the campaigns of others should set it, since
	// requests are signed with the keys of the service.
	Endpoints []string
	// OwnEndpoints are further endpoints that the operator chose, such as that of the output. They, the endpoint of S3
	// and those of the environment are always allowed.
	OwnEndpoints []string

	// Hosts are the allowed web servers: "example.org", or "*.example.org" for all subdomains. Nil allows all public
	// servers.
	Hosts []string
	// Networks are allowed besides public addresses, for example 10.0.0.0/8. All other private, loopback,
	// link-local and special addresses are refused, even after a redirect or a DNS answer.
	Networks []netip.Prefix
	// AllowHTTP permits http://, which others on the network can read and change.
	AllowHTTP bool
	// CAFile is a PEM file of authorities of web servers that are trusted besides the authorities of the system.
	CAFile string

	// MaxBytes limits the size of a remote file, of a member of a tar file, and of a cell or page of a Parquet file. A server that
	// does not state the size of a file may send 16 MiB, and one that does not support ranges 64 MiB of a list, shard or Parquet
	// file. The limit of local files is manifest.MaxFileBytes. 0 means DefaultMaxBytes.
	MaxBytes int64
	// CheckImage, if not nil, checks a file whose name ends as that of an image before the rest of it is read: a file, an
	// object, a web resource, or a member above 16 MiB; smaller members and cells before they are used. beginning has 32
	// bytes, fewer only of shorter files. size is in bytes, negative if it is unknown. The error of Get wraps its error.
	CheckImage Check
	// CheckOther is CheckImage for addresses whose name has no extension, which may be of any file. Nil checks nothing.
	CheckOther Check
	// Timeout limits a request, plus one second per MiB of data. 0 means DefaultTimeout.
	Timeout time.Duration
	// ObjectTimeout limits the reading of one remote file, with all its attempts and waits, or of one member or cell. 0 means
	// twice the limit of a request of MaxBytes: 9 minutes and 32 seconds with the defaults.
	ObjectTimeout time.Duration
	// Attempts is the maximum number of attempts of a request. 0 means DefaultAttempts.
	Attempts int

	// CacheDir caches files of buckets and web servers, and indexes of tar files. Several processes may share it.
	// Empty means ddiff/internal/dataset in the user's cache directory.
	CacheDir string
	// CacheBytes limits the size of the cache; 0 means storage.DefaultCacheBytes. A negative value disables the cache.
	CacheBytes int64

	// Logger gets a warning for every retry; nil means none.
	Logger *slog.Logger
	// Retry configures the retries of S3 requests. Its Attempts and Logger default to the fields above.
	Retry storage.RetryConfig
}

// Check checks the beginning and the size of a file.
type Check func(beginning []byte, size int64) error

// Validate reports the first invalid field by name.
func (c Config) Validate() error {
	for _, host := range c.Hosts {
		if name := strings.TrimPrefix(host, "*."); name == "" || strings.ContainsAny(name, "*/@ ") {
			return fmt.Errorf("field Hosts: %q is not a host; write example.org or *.example.org", host)
		}
	}
	for _, network := range c.Networks {
		if !network.IsValid() {
			return fmt.Errorf("field Networks: %v is not a network; write 10.0.0.0/8", network)
		}
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.MaxBytes = cmp.Or(c.MaxBytes, DefaultMaxBytes)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.ObjectTimeout = cmp.Or(c.ObjectTimeout, 2*(c.Timeout+time.Duration(c.MaxBytes>>20)*time.Second))
	c.Attempts = cmp.Or(c.Attempts, DefaultAttempts)
	if c.CheckImage == nil {
		c.CheckImage = acceptAny
	}
	if c.CheckOther == nil {
		c.CheckOther = acceptAny
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Retry.Attempts = cmp.Or(c.Retry.Attempts, c.Attempts)
	c.Retry.Logger = cmp.Or(c.Retry.Logger, c.Logger)
	if c.CacheDir == "" {
		if cache, err := os.UserCacheDir(); err == nil {
			c.CacheDir = filepath.Join(cache, "ddiff", "dataset")
		} else {
			c.CacheBytes = -1
		}
	}
	return c
}

package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/minio/minio-go/v7"
)

// Addressing selects the part of a request that names the bucket.
type Addressing = minio.BucketLookupType

const (
	// AddressingAuto uses the host for clouds that require it (Amazon, Google, Alibaba) and the path otherwise.
	AddressingAuto = minio.BucketLookupAuto
	// AddressingPath uses https://endpoint/bucket/key.
	AddressingPath = minio.BucketLookupPath
	// AddressingVirtualHost uses https://bucket.endpoint/key.
	AddressingVirtualHost = minio.BucketLookupDNS
)

const (
	// DefaultS3Endpoint is the endpoint if neither the configuration nor the environment names one.
	DefaultS3Endpoint = "https://s3.amazonaws.com"
	// DefaultS3Timeout is the default time limit of a request.
	DefaultS3Timeout = 30 * time.Second
	// MaxS3Bytes is the maximum size of an object, 5 GiB, which is the limit of one PUT. Multipart uploads are not
	// used, since not every server supports the condition of Create for them.
	MaxS3Bytes int64 = 5 << 30
	// MaxS3NameBytes is the maximum length of the name of an object.
	MaxS3NameBytes = 1024
	// MaxS3PrefixBytes is the maximum length of Prefix: prefix and key have at most the 1024 bytes that S3 allows.
	MaxS3PrefixBytes = MaxS3NameBytes - MaxKeyBytes - 1
)

// S3Config configures an S3 store. Only Bucket is required.
type S3Config struct {
	// Endpoint is the address of the server: "https://host[:port]", "http://host[:port]" or "host[:port]", which
	// means https. Empty means $AWS_ENDPOINT_URL_S3, $AWS_ENDPOINT_URL or DefaultS3Endpoint.
	Endpoint string
	// Bucket is the name of an existing bucket.
	Bucket string
	// Prefix is a key, see CheckKey, that is prepended to every key with a slash. Empty means the entire bucket.
	Prefix string
	// Region is the region of the bucket. Empty means $AWS_REGION, $AWS_DEFAULT_REGION or the answer of the server.
	Region string
	// Addressing selects the part of a request that names the bucket; the default is AddressingAuto.
	Addressing Addressing
	// CAFile is a PEM file of authorities that are trusted besides the authorities of the system. Empty means
	// $AWS_CA_BUNDLE, if set.
	CAFile string
	// CertFile and KeyFile are PEM files of a client certificate, for servers that require one. They are read for each
	// connection. Empty means $DDIFF_S3_CERT and $DDIFF_S3_KEY, if set.
	CertFile string
	KeyFile  string
	// AccessKey requires SecretKey. Without them the credentials are the first of: $AWS_ACCESS_KEY_ID and
	// $AWS_SECRET_ACCESS_KEY, $MINIO_ACCESS_KEY and $MINIO_SECRET_KEY, the shared credentials file with
	// $AWS_PROFILE, the role of the pod, container or machine.
	AccessKey string `json:"-"`
	// SecretKey belongs to AccessKey.
	SecretKey string `json:"-"`
	// ReadOnly makes every write fail with ErrReadOnly. Opening then writes nothing and needs no credentials for
	// public buckets.
	ReadOnly bool
	// AnyKey is for objects of other programs: all methods accept, and List yields, every name that S3 permits, of at most MaxS3NameBytes,
	// also those that are no keys. It requires ReadOnly and no Prefix.
	AnyKey bool
	// MaxBytes limits the size of an object, at most MaxS3Bytes; 0 means DefaultMaxBytes.
	MaxBytes int64
	// Timeout limits a request, plus one second per MiB of data. A slower request fails with ErrUnavailable.
	// 0 means DefaultS3Timeout.
	Timeout time.Duration

	// Retry configures the retries of calls. Opening is retried only if the server answers that it is busy.
	Retry RetryConfig `json:"-"`
	// Skipped, if not nil, is called with each name that a listing skips because it is no valid key, without the prefix.
	Skipped func(name string) `json:"-"`
	// Control, if not nil, is the net.Dialer.Control of all connections to the server. It can refuse addresses after the
	// DNS lookup. Then no proxy is used.
	Control func(network, address string, c syscall.RawConn) error `json:"-"`

	// dial replaces the dialer in tests of unresolvable host names.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// Validate reports the first invalid field by name.
func (c S3Config) Validate() error {
	if !bucketName.MatchString(c.Bucket) {
		return fmt.Errorf("field Bucket: %q is not a bucket name; use 3 to 63 of a-z, 0-9, '.' and '-'", c.Bucket)
	}
	if c.Endpoint != "" {
		if _, err := parseEndpoint(c.Endpoint); err != nil {
			return fmt.Errorf("field Endpoint: %w", err)
		}
	}
	if c.Prefix != "" {
		if err := CheckKey(c.Prefix); err != nil {
			return fmt.Errorf("field Prefix: %w", err)
		}
	}
	if len(c.Prefix) > MaxS3PrefixBytes {
		return fmt.Errorf("field Prefix: %d bytes, at most %d are allowed", len(c.Prefix), MaxS3PrefixBytes)
	}
	if c.AnyKey && (!c.ReadOnly || c.Prefix != "") {
		return errors.New("field AnyKey: set ReadOnly and no Prefix with it")
	}
	if c.MaxBytes < 0 || c.MaxBytes > MaxS3Bytes {
		return fmt.Errorf("field MaxBytes: %d is not between 0 and %d", c.MaxBytes, MaxS3Bytes)
	}
	if c.Timeout < 0 {
		return fmt.Errorf("field Timeout: %v is negative", c.Timeout)
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return errors.New("field KeyFile: set CertFile and KeyFile, or neither ($DDIFF_S3_CERT and $DDIFF_S3_KEY)")
	}
	if (c.AccessKey == "") != (c.SecretKey == "") {
		return errors.New("field SecretKey: set AccessKey and SecretKey, or neither")
	}
	return nil
}

// withDefaults fills empty fields from the environment, then with the defaults.
func (c S3Config) withDefaults() S3Config {
	c.Endpoint = cmp.Or(c.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), DefaultS3Endpoint)
	c.Region = cmp.Or(c.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	c.CAFile = cmp.Or(c.CAFile, os.Getenv("AWS_CA_BUNDLE"))
	c.CertFile, c.KeyFile = cmp.Or(c.CertFile, os.Getenv("DDIFF_S3_CERT")), cmp.Or(c.KeyFile, os.Getenv("DDIFF_S3_KEY"))
	if c.Skipped == nil {
		c.Skipped = func(string) {}
	}
	c.MaxBytes = cmp.Or(c.MaxBytes, DefaultMaxBytes)
	c.Timeout = cmp.Or(c.Timeout, DefaultS3Timeout)
	c.Retry = c.Retry.withDefaults()
	return c
}

// parseEndpoint splits an endpoint into scheme and host. Its errors do not repeat the text, which may contain a
// password.
func parseEndpoint(endpoint string) (*url.URL, error) {
	if !strings.Contains(endpoint, "://") {
		endpoint = "https://" + endpoint
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return nil, errors.New("not a URL; write https://host:port")
	case u.User != nil:
		return nil, errors.New("URL contains credentials; set them in the environment or the credentials file")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("scheme %q is neither http nor https", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("host is missing; write https://host:port")
	case u.Path != "" && u.Path != "/", u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("URL has a path or a query; write https://host:port, and the path as Bucket and Prefix")
	}
	return u, nil
}

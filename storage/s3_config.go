package storage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
)

// Addressing is how the bucket is named in a request.
type Addressing string

const (
	// AddressingAuto names the bucket in the host for the clouds that want it (Amazon,
	// Google, Alibaba) and in the path for every other endpoint.
	AddressingAuto Addressing = ""
	// AddressingPath gives https://endpoint/bucket/key.
	AddressingPath Addressing = "path"
	// AddressingVirtualHost gives https://bucket.endpoint/key.
	AddressingVirtualHost Addressing = "virtual-host"
)

const (
	// DefaultS3Endpoint is the endpoint when neither the configuration nor the
	// environment names one.
	DefaultS3Endpoint = "https://s3.amazonaws.com"
	// DefaultS3Timeout is the time limit of a call when the configuration sets none.
	DefaultS3Timeout = 30 * time.Second
	// MaxS3Bytes is the largest object of an S3 store, 5 GiB: what one PUT may carry.
	// Uploads in parts are not used, since the condition of Create does not hold for them
	// in every server.
	MaxS3Bytes int64 = 5 << 30
	// MaxS3PrefixBytes is the longest Prefix: with the longest key it makes the 1024 bytes
	// that S3 allows.
	MaxS3PrefixBytes = 1024 - MaxKeyBytes - 1
)

// S3Config says where an S3 store is and how to reach it. Only Bucket is required.
type S3Config struct {
	// Endpoint is the server's address, "https://host[:port]", "http://host[:port]" or
	// "host[:port]", which means https. Empty means the variable AWS_ENDPOINT_URL_S3, then
	// AWS_ENDPOINT_URL, then DefaultS3Endpoint.
	Endpoint string
	// Bucket must exist.
	Bucket string
	// Prefix is put in front of every key, with a slash between them. Empty means that the
	// store is the whole bucket. It follows the rules of a key, see CheckKey.
	Prefix string
	// Region is the bucket's. Empty means the variable AWS_REGION, then
	// AWS_DEFAULT_REGION, and otherwise that the server is asked.
	Region string
	// Addressing says where a request names the bucket; the default is AddressingAuto.
	Addressing Addressing
	// CAFile is a PEM file of authorities that are trusted besides the system's. Empty
	// means the variable AWS_CA_BUNDLE, if set.
	CAFile string
	// AccessKey and SecretKey are set together or not at all. Without them the credentials
	// come from the first of: the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY,
	// the variables MINIO_ACCESS_KEY and MINIO_SECRET_KEY, the shared credentials file
	// with AWS_PROFILE, the role of the pod, container or machine.
	AccessKey string
	// SecretKey belongs to AccessKey.
	SecretKey Secret
	// SessionToken belongs to temporary keys.
	SessionToken Secret
	// ReadOnly makes every write fail with ErrReadOnly. Opening then writes nothing, and
	// goes without credentials when there are none.
	ReadOnly bool
	// MaxBytes is the size limit of an object, at most MaxS3Bytes; 0 means
	// DefaultMaxBytes.
	MaxBytes int64
	// Timeout limits each request to the server; transferring the bytes has one more
	// second per MiB. What takes longer fails with ErrUnavailable. 0 means
	// DefaultS3Timeout.
	Timeout time.Duration

	// dial replaces the connections' dialer in tests of host names that do not resolve.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// bucketName is the rule for the names of buckets.
var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// Validate reports the first field that is wrong, by name.
func (c S3Config) Validate() error {
	if !bucketName.MatchString(c.Bucket) {
		return fmt.Errorf("field Bucket: %q is no bucket name: 3 to 63 of a-z, 0-9, '.' and '-'", c.Bucket)
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
	switch c.Addressing {
	case AddressingAuto, AddressingPath, AddressingVirtualHost:
	default:
		return fmt.Errorf("field Addressing: %q is neither %q nor %q nor empty",
			c.Addressing, AddressingPath, AddressingVirtualHost)
	}
	if c.MaxBytes < 0 || c.MaxBytes > MaxS3Bytes {
		return fmt.Errorf("field MaxBytes: %d is not between 0 and %d", c.MaxBytes, MaxS3Bytes)
	}
	if c.Timeout < 0 {
		return fmt.Errorf("field Timeout: %v is negative", c.Timeout)
	}
	return c.validateKeys()
}

func (c S3Config) validateKeys() error {
	switch {
	case c.AccessKey != "" && c.SecretKey.IsZero():
		return errors.New("field SecretKey: missing, but AccessKey is set")
	case c.AccessKey == "" && !c.SecretKey.IsZero():
		return errors.New("field AccessKey: missing, but SecretKey is set")
	case c.AccessKey == "" && !c.SessionToken.IsZero():
		return errors.New("field SessionToken: set without AccessKey and SecretKey")
	}
	return nil
}

// withDefaults fills empty fields from the environment and then with the defaults.
func (c S3Config) withDefaults() S3Config {
	c.Endpoint = firstOf(c.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), DefaultS3Endpoint)
	c.Region = firstOf(c.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	c.CAFile = firstOf(c.CAFile, os.Getenv("AWS_CA_BUNDLE"))
	if c.MaxBytes == 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultS3Timeout
	}
	return c
}

// firstOf is the first value that is not empty.
func firstOf(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}

// parseEndpoint splits an endpoint into host and scheme. Its errors do not repeat the
// text, which may hold a password.
func parseEndpoint(endpoint string) (*url.URL, error) {
	if !strings.Contains(endpoint, "://") {
		endpoint = "https://" + endpoint
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return nil, errors.New("it is no URL; write https://host:port")
	case u.User != nil:
		return nil, errors.New("it holds credentials; give them in the environment or the credentials file")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("scheme %q is neither http nor https", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("it names no host; write https://host:port")
	case u.Path != "" && u.Path != "/", u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("it has more than scheme, host and port; the path belongs in Bucket and Prefix")
	}
	return u, nil
}

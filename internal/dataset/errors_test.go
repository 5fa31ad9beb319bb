package dataset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"ddiff/manifest"
	"ddiff/storage"
)

// TestErrors: the sentinels of errors of stores and of the file system, and whether another attempt may help.
func TestErrors(t *testing.T) {
	t.Parallel()
	other := errors.New("other")
	wrap := func(err error) error { return fmt.Errorf("read: %w", err) }
	for _, c := range []struct {
		given, want error
		permanent   bool
	}{
		{storageError(wrap(storage.ErrNotFound)), ErrNotFound, true},
		{storageError(wrap(storage.ErrNoBucket)), ErrNotFound, true},
		{storageError(wrap(storage.ErrTooLarge)), ErrTooLarge, true},
		{storageError(wrap(storage.ErrChanged)), ErrChanged, false},
		{storageError(wrap(storage.ErrAccess)), ErrDenied, false}, // of the bucket
		{storageError(wrap(storage.ErrUnavailable)), ErrUnavailable, false},
		{storageError(wrap(storage.ErrBadKey)), ErrAddress, true},
		{storageError(other), other, false},
		{fileError(wrap(fs.ErrNotExist)), ErrNotFound, true},
		{fileError(wrap(fs.ErrPermission)), ErrDenied, true},
		{fileError(wrap(syscall.EIO)), ErrUnavailable, false},
		{fileError(wrap(syscall.ESTALE)), ErrUnavailable, false},
		{fileError(wrap(syscall.ENETUNREACH)), ErrUnavailable, false},
		{fileError(other), other, false},
		{ErrUnavailable, storage.ErrUnavailable, false},
		{ErrChanged, storage.ErrChanged, false},
		{ErrBadArchive, manifest.ErrBadList, true},
		{wrap(ErrRefused), ErrRefused, true},
		{storage.ErrCertificate, storage.ErrCertificate, false},
		{errors.Join(ErrBadArchive, context.Canceled), ErrBadArchive, false},
		{errors.Join(ErrBadArchive, context.DeadlineExceeded), ErrBadArchive, false},
	} {
		if !errors.Is(c.given, c.want) || permanent(c.given) != c.permanent {
			t.Errorf("%v: want %v; permanent: %v, want %v", c.given, c.want, permanent(c.given), c.permanent)
		}
	}
	if storageError(nil) != nil || fileError(nil) != nil {
		t.Error("no error becomes an error")
	}
	for _, c := range []struct{ one, another error }{
		{ErrUnavailable, storage.ErrChanged}, {ErrChanged, storage.ErrUnavailable}, {ErrBadArchive, manifest.ErrNoDataset},
	} {
		if errors.Is(c.one, c.another) {
			t.Errorf("%v is %v", c.one, c.another)
		}
	}
	if err := withoutURL(wrap(&url.Error{Op: "Get", URL: "https://h/?signature=x", Err: other})); err != other { //nolint:errorlint // the same error
		t.Errorf("error %v, want it without the URL", err)
	}
	if err := withoutURL(other); err != other { //nolint:errorlint // the same error
		t.Errorf("error %v, want it unchanged", err)
	}
}

// TestConfigDefaults: the limit of an object is twice that of a request of the largest size.
func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	c := Config{}.withDefaults()
	if c.MaxBytes != DefaultMaxBytes || c.Timeout != 30*time.Second || c.Attempts != 4 ||
		c.ObjectTimeout != 9*time.Minute+32*time.Second || c.Retry.Attempts != 4 || c.Retry.Logger == nil || c.Logger == nil || c.CacheDir == "" {
		t.Errorf("defaults %+v", c)
	}
	if cache, err := os.UserCacheDir(); err == nil && c.CacheDir != filepath.Join(cache, "ddiff", "dataset") {
		t.Errorf("cache %s", c.CacheDir)
	}
	own := Config{MaxBytes: 3 << 20, Timeout: time.Second, Attempts: 7, CacheDir: "x", ObjectTimeout: time.Hour, Retry: storage.RetryConfig{Attempts: 2}}
	if c := own.withDefaults(); c.MaxBytes != 3<<20 || c.Timeout != time.Second || c.Attempts != 7 || c.CacheDir != "x" ||
		c.ObjectTimeout != time.Hour || c.Retry.Attempts != 2 {
		t.Errorf("own values became %+v", c)
	}
	own.ObjectTimeout = 0
	if c := own.withDefaults(); c.ObjectTimeout != 8*time.Second {
		t.Errorf("limit of an object of 3 MiB: %v, want 8 s", c.ObjectTimeout)
	}
}

// Region and addressing are those of the address, or else those of the configuration, and the time limit of S3 its own, or else that of every source.
func TestBucketConfig(t *testing.T) {
	t.Parallel()
	configured := &buckets{cfg: Config{S3: storage.S3Config{Region: "eu-west-1", Addressing: storage.AddressingPath}}}
	for address, want := range map[string]storage.S3Config{
		"s3://images/a.png": {Region: "eu-west-1", Addressing: storage.AddressingPath},
		"s3://images/a.png?region=us-east-2&path_style=false": {Region: "us-east-2", Addressing: storage.AddressingVirtualHost},
	} {
		a, err := Parse(address)
		must(t, err)
		if c, err := configured.config(a); err != nil || c.Region != want.Region || c.Addressing != want.Addressing {
			t.Errorf("%s: region %q, addressing %v, %v; want %+v", address, c.Region, c.Addressing, err, want)
		}
	}
	for own, want := range map[time.Duration]time.Duration{0: 3 * time.Second, 7 * time.Second: 7 * time.Second} {
		b := &buckets{cfg: Config{Timeout: 3 * time.Second, S3: storage.S3Config{Timeout: own}}}
		a, err := Parse("s3://images/a.png")
		must(t, err)
		if c, err := b.config(a); err != nil || c.Timeout != want || c.Bucket != "images" || !c.ReadOnly {
			t.Errorf("configuration %+v, %v; want a limit of %v", c, err, want)
		}
	}
}

// A range of one number is one path; more than the largest number of paths is an error.
func TestExpandLimits(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]int{"a{3..3}": 1, "a{1..100000}": maxExpanded, "a{1..100001}": 0, "{1..400}{1..400}": 0} {
		if paths, err := expand(path); len(paths) != want || (err == nil) != (want > 0) {
			t.Errorf("%s: %d paths, error %v; want %d", path, len(paths), err, want)
		}
	}
}

// A read is repeated up to n times while its error is transient.
func TestRetryRead(t *testing.T) {
	t.Parallel()
	transient, other := errors.New("transient"), errors.New("other")
	for _, c := range []struct {
		failures, n, calls int
		cause, err         error
	}{{0, 1, 1, nil, nil}, {1, 1, 1, transient, transient}, {1, 2, 2, transient, nil}, {2, 2, 2, transient, transient}, {1, 2, 1, other, other}} {
		calls := 0
		_, err := retryRead(t.Context(), c.n, transient, func() (int, error) {
			if calls++; calls <= c.failures {
				return 0, c.cause
			}
			return 0, nil
		})
		if calls != c.calls || !errors.Is(err, c.err) {
			t.Errorf("%+v: %d calls, %v", c, calls, err)
		}
	}
}

package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/minio/minio-go/v7"

	"ddiff/internal/failure"
	"ddiff/internal/regular"
)

// ErrChanged: the object no longer has the requested version. GetRange returns it.
var ErrChanged = failure.New(failure.Output, "object has changed")

// GetRange returns size bytes from offset, fewer only at the end of the object. With an etag it returns ErrChanged if the
// object has another. Parts have no checksums: the caller should know a digest.
func (s *S3) GetRange(ctx context.Context, key, etag string, offset, size int64) ([]byte, error) {
	if err := s.begin(ctx, "get", key); err != nil {
		return nil, err
	}
	if offset < 0 || size < 0 {
		return nil, fmt.Errorf("get %s: invalid range of %d bytes from offset %d", key, size, offset)
	}
	if size == 0 {
		return nil, nil
	}
	if err := checkSize(size, s.maxBytes); err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	var options minio.GetObjectOptions
	if err := options.SetRange(offset, offset+size-1); err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	etag = strings.Trim(etag, `"`)
	if etag != "" {
		if err := options.SetMatchETag(etag); err != nil {
			return nil, fmt.Errorf("get %s: %w", key, err)
		}
	}
	var data []byte
	err := s.try(ctx, "get", key, func() error {
		part, info, err := s.read(ctx, key, options, size, 0, nil)
		response, _ := errors.AsType[minio.ErrorResponse](err)
		if response.Code == codePrecondition || err == nil && etag != "" && info.ETag != "" && info.ETag != etag {
			return fmt.Errorf("%w since the listing", ErrChanged)
		}
		if response.Code == "InvalidRange" {
			err = nil // the range begins after the end
		}
		data = part
		return err
	})
	return data, err
}

// GetChecked returns the bytes of an object as Get does, but calls check with its first bytes, fewer only of a shorter
// object, and its size in bytes, negative if it is unknown, before it reads the rest. It returns the error of check.
func (s *S3) GetChecked(
	ctx context.Context, key string, first int64, check func(beginning []byte, size int64) error,
) ([]byte, error) {
	if err := s.begin(ctx, "get", key); err != nil {
		return nil, err
	}
	var data []byte
	err := s.try(ctx, "get", key, func() error {
		all, info, err := s.read(ctx, key, minio.GetObjectOptions{}, s.maxBytes, first, check)
		// Objects of other programs have no digest.
		if want := info.UserMetadata[metadataSHA256]; err == nil && want != "" {
			if got := regular.SHA256(all); got != want {
				return fmt.Errorf("%w: SHA-256 is %s, want %s", ErrCorrupt, got, want)
			}
		}
		data = all
		return err
	})
	return data, err
}

package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/minio/minio-go/v7"
)

// ErrChanged: the object no longer has the requested version. GetRange returns it.
var ErrChanged = errors.New("object has changed")

// Version describes one version of an object.
type Version struct {
	// Info is the result of Stat.
	Info
	// ETag is an opaque identifier of the version.
	ETag string
}

// Ranged is a store that reads parts of objects. S3 implements it, and Retrying around an S3.
type Ranged interface {
	// Version returns the current version of an object, or ErrNotFound.
	Version(ctx context.Context, key string) (Version, error)
	// GetRange returns size bytes from offset, fewer only at the end of the object. With an etag it returns
	// ErrChanged if the object has another. Parts have no checksums: the caller should know a digest.
	GetRange(ctx context.Context, key, etag string, offset, size int64) ([]byte, error)
	// GetChecked returns the bytes of an object as Get does, but calls check with its first bytes, fewer only of a shorter
	// object, and its size in bytes, negative if it is unknown, before it reads the rest. It returns the error of check.
	GetChecked(ctx context.Context, key string, first int64, check func(beginning []byte, size int64) error) ([]byte, error)
}

var (
	_ Ranged = (*S3)(nil)
	_ Ranged = (*Retrying)(nil)
)

// Version implements Ranged.
func (s *S3) Version(ctx context.Context, key string) (Version, error) {
	if err := begin(ctx, "stat", key); err != nil {
		return Version{}, err
	}
	info, err := s.head(ctx, key)
	if err != nil {
		return Version{}, failed(ctx, "stat", key, err)
	}
	return Version{Info: Info{Key: key, Size: info.Size, Modified: info.LastModified}, ETag: info.ETag}, nil
}

// GetRange implements Ranged.
func (s *S3) GetRange(ctx context.Context, key, etag string, offset, size int64) ([]byte, error) {
	if err := begin(ctx, "get", key); err != nil {
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
	data, err := s.readRange(ctx, key, etag, offset, size)
	return data, failed(ctx, "get", key, err)
}

func (s *S3) readRange(ctx context.Context, key, etag string, offset, size int64) ([]byte, error) {
	call, done, err := s.limit(ctx, size)
	if err != nil {
		return nil, err
	}
	defer done()
	var options minio.GetObjectOptions
	if err := options.SetRange(offset, offset+size-1); err != nil {
		return nil, err
	}
	if etag != "" {
		if err := options.SetMatchETag(strings.Trim(etag, `"`)); err != nil {
			return nil, err
		}
	}
	body, info, _, err := s.core.GetObject(call, s.bucket, s.name(key), options)
	if response, ok := errors.AsType[minio.ErrorResponse](err); ok {
		switch response.Code {
		case codePrecondition:
			return nil, fmt.Errorf("%w since the listing", ErrChanged)
		case "InvalidRange":
			return nil, nil // the range begins after the end
		}
	}
	if err != nil {
		return nil, err
	}
	defer body.Close() // opened for reading
	if etag != "" && info.ETag != "" && info.ETag != strings.Trim(etag, `"`) {
		return nil, fmt.Errorf("%w since the listing", ErrChanged)
	}
	var buf bytes.Buffer
	if _, err := buf.ReadFrom(io.LimitReader(body, size+1)); err != nil {
		return nil, err
	}
	switch got := int64(buf.Len()); {
	case call.Err() != nil: // an aborted answer may look complete
		return nil, call.Err()
	case got > size:
		return nil, errors.New("server sent more than the requested range")
	}
	return buf.Bytes(), nil
}

// GetChecked implements Ranged.
func (s *S3) GetChecked(
	ctx context.Context, key string, first int64, check func(beginning []byte, size int64) error,
) ([]byte, error) {
	if err := begin(ctx, "get", key); err != nil {
		return nil, err
	}
	data, err := s.read(ctx, key, first, check)
	return data, failed(ctx, "get", key, err)
}

// Version implements Ranged. It returns [errors.ErrUnsupported] if the wrapped store is not Ranged.
func (r *Retrying) Version(ctx context.Context, key string) (v Version, err error) {
	err = r.tryRanged(ctx, "stat", key, "versions", func(s Ranged) (err error) {
		v, err = s.Version(ctx, key)
		return err
	})
	return v, err
}

// GetRange implements Ranged. It returns [errors.ErrUnsupported] if the wrapped store is not Ranged.
func (r *Retrying) GetRange(ctx context.Context, key, etag string, offset, size int64) (data []byte, err error) {
	err = r.tryRanged(ctx, "get", key, "ranges", func(s Ranged) (err error) {
		data, err = s.GetRange(ctx, key, etag, offset, size)
		return err
	})
	return data, err
}

// GetChecked implements Ranged. It returns [errors.ErrUnsupported] if the wrapped store is not Ranged.
func (r *Retrying) GetChecked(
	ctx context.Context, key string, first int64, check func(beginning []byte, size int64) error,
) (data []byte, err error) {
	err = r.tryRanged(ctx, "get", key, "ranges", func(s Ranged) (err error) {
		data, err = s.GetChecked(ctx, key, first, check)
		return err
	})
	return data, err
}

// tryRanged is try of a call that needs a Ranged.
func (r *Retrying) tryRanged(ctx context.Context, action, key, needs string, call func(Ranged) error) error {
	s, ok := r.store.(Ranged)
	if !ok {
		return fmt.Errorf("%s %s: %s: %w", action, key, needs, errors.ErrUnsupported)
	}
	return r.try(ctx, action, key, func() error { return call(s) })
}

package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/minio/minio-go/v7"
)

// Get implements Store. It returns ErrCorrupt if the bytes do not match the stored digest. Objects of other programs have none.
func (s *S3) Get(ctx context.Context, key string) ([]byte, error) {
	return s.GetChecked(ctx, key, 0, nil)
}

// read requests an object, or a range of it, of at most limit bytes. check, unless it is nil, gets the first bytes before the rest is read.
func (s *S3) read(
	ctx context.Context, key string, options minio.GetObjectOptions, limit, first int64, check func(beginning []byte, size int64) error,
) (data []byte, info minio.ObjectInfo, err error) {
	call, cancel := context.WithCancel(ctx)
	defer cancel()
	timeout := time.AfterFunc(s.budget(0), cancel)
	defer timeout.Stop()
	body, info, _, err := s.core.GetObject(call, s.bucket, s.name(key), options)
	if err != nil {
		return nil, info, err
	}
	defer body.Close() // opened for reading
	if err := checkSize(info.Size, limit); err != nil {
		return nil, info, err
	}
	timeout.Reset(s.budget(info.Size)) // now the size is known
	var buf bytes.Buffer
	if check != nil {
		if _, err := buf.ReadFrom(io.LimitReader(body, first)); err != nil {
			return nil, info, err
		}
		if err := check(buf.Bytes(), info.Size); err != nil {
			return nil, info, err
		}
	}
	buf.Grow(int(max(info.Size-int64(buf.Len()), 0)) + bytes.MinRead)
	// The size is -1 if the answer does not state it.
	if _, err := buf.ReadFrom(io.LimitReader(body, limit+1-int64(buf.Len()))); err != nil {
		return nil, info, err
	}
	if err := call.Err(); err != nil { // an aborted answer may look complete
		return nil, info, err
	}
	return buf.Bytes(), info, checkSize(int64(buf.Len()), limit)
}

// Stat implements Store. It returns the ETag, too.
func (s *S3) Stat(ctx context.Context, key string) (Info, error) {
	if err := s.begin(ctx, "stat", key); err != nil {
		return Info{}, err
	}
	var info Info
	err := s.try(ctx, "stat", key, func() error {
		found, err := s.head(ctx, key)
		if err == nil && found.Size < 0 {
			err = errors.New("the server does not state the size")
		}
		if err == nil {
			info = Info{Key: key, Size: found.Size, Modified: found.LastModified, ETag: found.ETag}
		}
		return err
	})
	return info, err
}

func (s *S3) head(ctx context.Context, key string) (minio.ObjectInfo, error) {
	call, cancel := s.limit(ctx, 0)
	defer cancel()
	return s.core.StatObject(call, s.bucket, s.name(key), minio.StatObjectOptions{})
}

// List implements Store. It holds one page of 1000 objects in memory and skips invalid keys.
//
// Some servers answer in XML, which has no form for most control characters, and replace each by U+FFFD. Such a name, which is not that of
// the object and not in byte order, is skipped as well. With S3Config.AnyKey it yields all names.
func (s *S3) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := CheckPrefix(prefix); err != nil && !s.anyKey {
			yield(Info{}, fmt.Errorf("list: %w", err))
			return
		}
		last := ""
		for more := true; more; {
			var page []minio.ObjectInfo
			err := s.try(ctx, "list", fmt.Sprintf("%q", prefix), func() (err error) {
				page, err = s.listPage(ctx, s.name(prefix), last, s.pageSize)
				return err
			})
			if err != nil {
				yield(Info{}, err)
				return
			}
			before := last
			for _, object := range page {
				if err := ctx.Err(); err != nil {
					yield(Info{}, fmt.Errorf("list %q: %w", prefix, err))
					return
				}
				key := strings.TrimPrefix(object.Key, s.prefix)
				if !hasReplaced(key) {
					last = object.Key
				}
				if !s.anyKey && (hasReplaced(key) || CheckKey(key) != nil) {
					s.skipped(key)
				} else if !yield(Info{Key: key, Size: object.Size, Modified: object.LastModified}, nil) {
					return
				}
			}
			if more = len(page) == s.pageSize; more && last == before {
				yield(Info{}, fmt.Errorf("list %q: %d names with replaced characters after %q", prefix, len(page), last))
				return
			}
		}
	}
}

// listPage returns the first size objects whose names begin with prefix and sort after the name last. Fewer are the end of the listing.
func (s *S3) listPage(ctx context.Context, prefix, last string, size int) ([]minio.ObjectInfo, error) {
	call, cancel := s.limit(ctx, 0)
	defer cancel()
	var page []minio.ObjectInfo
	for object := range s.core.ListObjectsIter(call, s.bucket, minio.ListObjectsOptions{
		Prefix: prefix, StartAfter: last, Recursive: true, MaxKeys: size,
	}) {
		if object.Err != nil {
			return nil, object.Err
		}
		if object.Size < 0 {
			return nil, fmt.Errorf("server lists %q with %d bytes", object.Key, object.Size)
		}
		if !hasReplaced(object.Key) {
			if object.Key <= last {
				return nil, fmt.Errorf("server lists %q after %q, out of byte order", object.Key, last)
			}
			last = object.Key
		}
		page = append(page, object)
		if len(page) == size {
			break // the next page has a time limit of its own
		}
	}
	return page, call.Err()
}

func hasReplaced(name string) bool { return strings.ContainsRune(name, utf8.RuneError) }

package storage

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/minio/minio-go/v7"
)

// Get implements Store. It returns ErrCorrupt if the bytes do not match a stored checksum. Objects of other programs
// may have no checksum.
func (s *S3) Get(ctx context.Context, key string) ([]byte, error) {
	return s.GetChecked(ctx, key, 0, nil)
}

func (s *S3) read(ctx context.Context, key string, first int64, check func(beginning []byte, size int64) error) ([]byte, error) {
	call, cancel := context.WithCancel(ctx)
	defer cancel()
	timeout := time.AfterFunc(s.budget(0), cancel)
	defer timeout.Stop()

	var options minio.GetObjectOptions
	options.Set("X-Amz-Checksum-Mode", "ENABLED")
	body, info, _, err := s.core.GetObject(call, s.bucket, s.name(key), options)
	if err != nil {
		return nil, err
	}
	defer body.Close() // opened for reading
	if err := checkSize(info.Size, s.maxBytes); err != nil {
		return nil, err
	}
	timeout.Reset(s.budget(info.Size)) // now the size is known

	var buf bytes.Buffer
	if check != nil {
		if _, err := buf.ReadFrom(io.LimitReader(body, first)); err != nil {
			return nil, err
		}
		if err := check(buf.Bytes(), info.Size); err != nil {
			return nil, err
		}
	}
	buf.Grow(int(max(info.Size-int64(buf.Len()), 0)) + bytes.MinRead)
	// The size is -1 if the answer does not state it.
	if _, err := buf.ReadFrom(io.LimitReader(body, s.maxBytes+1-int64(buf.Len()))); err != nil {
		return nil, err
	}
	if err := checkSize(int64(buf.Len()), s.maxBytes); err != nil {
		return nil, err
	}
	wrong := verify(info, buf.Bytes())
	if wrong == nil && info.UserMetadata[metadataSHA256] != "" {
		return buf.Bytes(), nil
	}
	if err := s.checkLength(call, key, info, buf.Bytes()); err != nil && (wrong == nil || errors.Is(err, ErrUnavailable)) {
		return nil, err
	}
	return buf.Bytes(), wrong
}

// checkLength compares the bytes of an object with the length that a second answer states, unless their MD5 is the ETag: a proxy may
// cut an object and state the shorter length.
func (s *S3) checkLength(ctx context.Context, key string, info minio.ObjectInfo, data []byte) error {
	sum := md5.Sum(data) // the ETag of most servers
	if info.ETag == hex.EncodeToString(sum[:]) {
		return nil
	}
	stated, err := s.head(ctx, key)
	if err == nil && stated.ETag == info.ETag && stated.Size != int64(len(data)) {
		return fmt.Errorf("%w: received %d of %d bytes", ErrUnavailable, len(data), stated.Size)
	}
	return err
}

// verify compares the bytes of an object with the checksums of the answer.
func verify(info minio.ObjectInfo, data []byte) error {
	if want := info.UserMetadata[metadataSHA256]; want != "" {
		sum := sha256.Sum256(data)
		if got := hex.EncodeToString(sum[:]); got != want {
			return fmt.Errorf("%w: SHA-256 is %s, want %s", ErrCorrupt, got, want)
		}
	}
	if info.ChecksumMode == minio.ChecksumFullObjectMode.String() {
		return verifyChecksums(info, data)
	}
	return nil // the checksums of multipart objects do not cover the bytes
}

// verifyChecksums compares the bytes with the checksums that the server stored for the complete object.
func verifyChecksums(info minio.ObjectInfo, data []byte) error {
	for _, c := range []struct {
		kind minio.ChecksumType
		want string
	}{
		{minio.ChecksumCRC64NVME, info.ChecksumCRC64NVME},
		{minio.ChecksumCRC32C, info.ChecksumCRC32C},
		{minio.ChecksumCRC32, info.ChecksumCRC32},
		{minio.ChecksumSHA256, info.ChecksumSHA256},
		{minio.ChecksumSHA1, info.ChecksumSHA1},
	} {
		if c.want == "" {
			continue
		}
		sum := c.kind.ChecksumBytes(data)
		if got := sum.Encoded(); got != c.want {
			return fmt.Errorf("%w: %s is %s, want %s", ErrCorrupt, c.kind, got, c.want)
		}
	}
	return nil
}

// Stat implements Store.
func (s *S3) Stat(ctx context.Context, key string) (Info, error) {
	v, err := s.Version(ctx, key)
	return v.Info, err
}

func (s *S3) head(ctx context.Context, key string) (minio.ObjectInfo, error) {
	call, cancel := s.limit(ctx, 0)
	defer cancel()
	return s.core.StatObject(call, s.bucket, s.name(key), minio.StatObjectOptions{})
}

// List implements Store. It holds one page of 1000 objects in memory and skips invalid keys.
//
// Some servers answer in XML, which has no form for most control characters, and replace each by U+FFFD. Such a name is
// yielded, but it is not that of the object and not in byte order.
func (s *S3) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := CheckPrefix(prefix); err != nil {
			yield(Info{}, fmt.Errorf("list: %w", err))
			return
		}
		last := ""
		replaced := map[string]bool{} // names with replaced characters since last
		for more := true; more; {
			var page []minio.ObjectInfo
			err := s.try(ctx, "list", fmt.Sprintf("%q", prefix), func() (err error) {
				page, err = s.listPage(ctx, s.name(prefix), last)
				return err
			})
			if err != nil {
				yield(Info{}, err)
				return
			}
			for _, object := range page {
				if err := ctx.Err(); err != nil {
					yield(Info{}, fmt.Errorf("list %q: %w", prefix, err))
					return
				}
				if hasReplaced(object.Key) {
					if replaced[object.Key] {
						continue // of the page before
					}
					replaced[object.Key] = true
				} else {
					last = object.Key
					clear(replaced)
				}
				key := strings.TrimPrefix(object.Key, s.prefix)
				if CheckKey(key) != nil {
					s.skipped(key)
				} else if !yield(Info{Key: key, Size: object.Size, Modified: object.LastModified}, nil) {
					return
				}
			}
			if more = len(page) == s.pageSize; more && len(replaced) >= s.pageSize {
				yield(Info{}, fmt.Errorf("list %q: %d names with replaced characters after %q", prefix, len(replaced), last))
				return
			}
		}
	}
}

// listPage returns the first objects whose names begin with prefix and sort after the name last. Fewer than pageSize
// objects are the end of the listing.
func (s *S3) listPage(ctx context.Context, prefix, last string) ([]minio.ObjectInfo, error) {
	call, cancel := s.limit(ctx, 0)
	defer cancel()
	var page []minio.ObjectInfo
	for object := range s.core.ListObjectsIter(call, s.bucket, minio.ListObjectsOptions{
		Prefix: prefix, StartAfter: last, Recursive: true, MaxKeys: s.pageSize,
	}) {
		if object.Err != nil {
			return nil, object.Err
		}
		if !hasReplaced(object.Key) {
			if object.Key <= last {
				return nil, fmt.Errorf("server lists %q after %q, out of byte order", object.Key, last)
			}
			last = object.Key
		}
		page = append(page, object)
		if len(page) == s.pageSize {
			break // the next page has a time limit of its own
		}
	}
	return page, call.Err()
}

// hasReplaced reports whether the server may have replaced characters of a name.
func hasReplaced(name string) bool { return strings.ContainsRune(name, utf8.RuneError) }

package storage

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/minio/minio-go/v7"

	"ddiff/internal/regular"
)

// Metadata names of an object as minio-go returns them; the headers are x-amz-meta-ddiff-sha256 and
// x-amz-meta-ddiff-attempt.
const (
	// metadataSHA256 is the SHA-256 of the bytes in lowercase hexadecimal digits.
	metadataSHA256 = "Ddiff-Sha256"
	// metadataAttempt is the attempt id of the Create that wrote the object.
	metadataAttempt = "Ddiff-Attempt"
)

// Put implements Store.
func (s *S3) Put(ctx context.Context, key string, data []byte) error {
	return s.write(ctx, "put", key, len(data), func() error { return s.send(ctx, key, data, "") })
}

// Create implements Store. If the server reports an existing object or the connection breaks, the metadata of the
// object show whether this call wrote it, which is a success.
func (s *S3) Create(ctx context.Context, key string, data []byte) error {
	attempt := rand.Text()
	return s.write(ctx, "create", key, len(data), func() error {
		err := s.send(ctx, key, data, attempt)
		if minio.ToErrorResponse(err).Code == codePrecondition {
			err = s.checkWriter(ctx, key, data, attempt)
		} else if answerLost(err) && ctx.Err() == nil {
			if known := s.checkWriter(ctx, key, data, attempt); known == nil || errors.Is(known, ErrExists) {
				err = known
			}
		}
		if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
			return fmt.Errorf("%w: the server has an object with this key, and then has none", ErrUnavailable) // without err, which is ErrNotFound
		}
		return err
	})
}

// answerLost reports whether the answer to a request did not arrive, for example because the server refused a large
// Create without reading its body.
func answerLost(err error) bool {
	return err != nil && connectionBroke(err) &&
		!errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}

// checkWriter returns nil if the call with the given attempt id wrote the object, and ErrExists if another call did.
func (s *S3) checkWriter(ctx context.Context, key string, data []byte, attempt string) error {
	info, err := s.head(ctx, key)
	if err != nil {
		return err
	}
	if info.UserMetadata[metadataAttempt] == attempt && info.UserMetadata[metadataSHA256] == regular.SHA256(data) {
		return nil
	}
	return ErrExists
}

// Delete implements Store.
func (s *S3) Delete(ctx context.Context, key string) error {
	return s.write(ctx, "delete", key, 0, func() error { return s.remove(ctx, s.name(key)) })
}

func (s *S3) remove(ctx context.Context, name string) error {
	call, cancel := s.limit(ctx, 0)
	defer cancel()
	err := s.core.RemoveObject(call, s.bucket, name, minio.RemoveObjectOptions{})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil
	}
	return err
}

// write is try of a call that changes an object, after it has checked the key and the size of the object.
func (s *S3) write(ctx context.Context, action, key string, size int, call func() error) error {
	if err := begin(ctx, action, key); err != nil {
		return err
	}
	if s.readOnly {
		return fmt.Errorf("%s %s: %w: the store was opened with ReadOnly", action, key, ErrReadOnly)
	}
	if err := checkSize(int64(size), s.maxBytes); err != nil {
		return fmt.Errorf("%s %s: %w", action, key, err)
	}
	return s.try(ctx, action, key, call)
}

// send sends one PUT request, with an attempt id a conditional one. It returns the errors of minio-go.
//
// PutObject of Core sends one request. PutObject of Client would upload larger objects in parts and drop the condition.
func (s *S3) send(ctx context.Context, key string, data []byte, attempt string) error {
	size := int64(len(data))
	call, cancel := s.limit(ctx, size)
	defer cancel()
	digest := regular.SHA256(data)
	options := minio.PutObjectOptions{
		UserMetadata: map[string]string{metadataSHA256: digest},
		// The signature covers the SHA-256 of the complete body instead of chunks.
		DisableContentSha256: true,
	}
	if attempt != "" {
		options.SetMatchETagExcept("*")
		options.UserMetadata[metadataAttempt] = attempt
	}
	// Buckets with a default retention require it. Not every server accepts the header of another digest.
	sum := md5.Sum(data)
	info, err := s.core.PutObject(
		call, s.bucket, s.name(key), bytes.NewReader(data), size, base64.StdEncoding.EncodeToString(sum[:]), digest, options)
	if err == nil && info.ETag == "" {
		err = errNoETag
	}
	return err
}

package storage

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/minio/minio-go/v7"
)

var (
	// ErrUnavailable is returned when the store did not answer, answered that it cannot
	// now (5xx, "slow down"), or received damaged bytes. Trying again may help. After a
	// write it says nothing about whether the object is there.
	ErrUnavailable = errors.New("store is unavailable")
	// ErrCorrupt is returned by Get when the bytes do not have the checksum that was
	// stored with them.
	ErrCorrupt = errors.New("object is corrupt")
	// ErrAccess is returned when the store does not know the credentials, when there are
	// none, or when they do not allow reading. A forbidden write gives ErrReadOnly.
	ErrAccess = errors.New("access denied")
	// ErrNoBucket is returned when the bucket does not exist.
	ErrNoBucket = errors.New("bucket does not exist")
	// ErrCertificate is returned when the server's TLS certificate is not valid: expired,
	// for another host, or of an unknown authority.
	ErrCertificate = errors.New("server certificate is not valid")
	// ErrNoConditionalWrites is returned by OpenS3 for a server that accepts
	// "If-None-Match: *" and ignores it, or does not know it. Create could then overwrite.
	ErrNoConditionalWrites = errors.New("server does not honour conditional writes")
)

// The error codes that decide how a conditional write goes on.
const (
	codePrecondition = minio.PreconditionFailed
	codeConflict     = "ConditionalRequestConflict"
	codeAborted      = "OperationAborted"
)

// failed wraps the error of a call to the server with the action and the key. When ctx has
// ended, that is the error.
func failed(ctx context.Context, action, key string, err error) error {
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("%s %s: %w", action, key, cause)
	}
	write := action == "put" || action == "create" || action == "delete"
	return fmt.Errorf("%s %s: %w", action, key, s3Error(err, write))
}

// s3Error puts the sentinel that fits in front of an error of minio-go.
func s3Error(err error, write bool) error {
	if response, ok := errors.AsType[minio.ErrorResponse](err); ok {
		return answerError(response, write)
	}
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return certificateError(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		// The caller's context lives: the limit of this call has passed.
		return fmt.Errorf("%w: no answer in time", ErrUnavailable)
	case connectionBroke(err):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// connectionBroke reports whether err comes from the connection or from an answer that was
// cut short.
func connectionBroke(err error) bool {
	var transport *url.Error
	var network net.Error
	var syntax *xml.SyntaxError
	return errors.As(err, &transport) || errors.As(err, &network) || errors.As(err, &syntax) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

func certificateError(err error) error {
	var authority x509.UnknownAuthorityError
	if errors.As(err, &authority) {
		return fmt.Errorf("%w: %w; name its authority in CAFile", ErrCertificate, err)
	}
	return fmt.Errorf("%w: %w", ErrCertificate, err)
}

// answerError puts the sentinel that fits in front of an error that the server sent.
func answerError(r minio.ErrorResponse, write bool) error {
	detail := fmt.Errorf("%s (%s)", r.Error(), r.Code)
	if sentinel := codeSentinel(r.Code, write); sentinel != nil {
		return fmt.Errorf("%w: %w", sentinel, detail)
	}
	switch status := r.StatusCode; {
	case r.Code == minio.AuthorizationHeaderMalformed, r.Code == minio.InvalidRegion, r.Code == "PermanentRedirect":
		return fmt.Errorf("%w; the bucket is in region %q, set Region", detail, r.Region)
	case status == http.StatusInsufficientStorage:
		return fmt.Errorf("%w: %w", ErrNoSpace, detail)
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests,
		status >= http.StatusInternalServerError && status != http.StatusNotImplemented:
		return fmt.Errorf("%w: %w", ErrUnavailable, detail)
	}
	return detail
}

// codeSentinel is the sentinel of an S3 error code, or nil when the HTTP status decides.
func codeSentinel(code string, write bool) error {
	switch code {
	case minio.NoSuchKey, minio.NoSuchVersion:
		return ErrNotFound
	case minio.NoSuchBucket:
		return ErrNoBucket
	case minio.AccessDenied, minio.AllAccessDisabled, minio.MethodNotAllowed:
		if write {
			return ErrReadOnly
		}
		return ErrAccess
	case minio.InvalidAccessKeyID, minio.SignatureDoesNotMatch, minio.RequestTimeTooSkewed,
		"InvalidToken", "ExpiredToken", "XAdminUserNotFound": // the last is versitygw's InvalidAccessKeyId
		return ErrAccess
	case minio.EntityTooLarge:
		return ErrTooLarge
	case "KeyTooLongError", minio.XMinioInvalidObjectName:
		return ErrBadKey
	case "QuotaExceeded", "XMinioAdminBucketQuotaExceeded", "XMinioStorageFull":
		return ErrNoSpace
	case "ObjectParentIsFile", "ExistingObjectIsDirectory", "XMinioParentIsObject":
		return ErrConflict
	case minio.BadDigest, minio.XAmzContentSHA256Mismatch, minio.IncompleteBody, codeConflict, codeAborted,
		"SlowDown", "RequestTimeout", minio.InternalError:
		return ErrUnavailable
	}
	return nil
}

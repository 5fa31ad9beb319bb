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
	"strings"

	"github.com/minio/minio-go/v7"

	"ddiff/internal/failure"
)

var (
	// ErrUnavailable: the server did not answer, answered with a temporary failure (5xx, "slow down"), or received
	// damaged bytes. A retry may help. After a failed write the object may or may not exist.
	ErrUnavailable = failure.New(failure.Output, "store is unavailable")
	// ErrCorrupt: the bytes do not match their stored checksum. Get returns it.
	ErrCorrupt = failure.New(failure.Output, "object is corrupt")
	// ErrAccess: the credentials are missing, unknown, or do not permit reading. A forbidden write is ErrReadOnly.
	ErrAccess = failure.New(failure.Output, "access denied")
	// ErrNoBucket: the bucket does not exist.
	ErrNoBucket = failure.New(failure.Output, "bucket does not exist")
	// ErrCertificate: the TLS certificate of the server has expired, names another host or has an unknown authority.
	ErrCertificate = failure.New(failure.Output, "server certificate is not valid")
	// ErrNoConditionalWrites: the server ignores or does not support "If-None-Match: *", so that Create could
	// overwrite an object. OpenS3 returns it.
	ErrNoConditionalWrites = failure.New(failure.Output, "server does not honour conditional writes")
)

// errClock: the server refuses the signature because of its time.
var errClock = errors.New("the clock of this machine and that of the server differ by more than the server permits; set the clock, for example by NTP")

// errNoETag: the answer to a PUT request is not that of a server that has stored the object, but for example a proxy's page.
var errNoETag = fmt.Errorf("%w: the server accepted the object without an ETag; check that the endpoint is an S3 server", ErrUnavailable)

// Error codes of conditional writes.
const (
	codePrecondition = minio.PreconditionFailed
	codeConflict     = "ConditionalRequestConflict"
	codeAborted      = "OperationAborted"
)

// codelessBadRequest is the code, and without a body the message, that minio-go gives an answer without them: that of Amazon to a HEAD request with
// expired keys. The pages of other servers and proxies have bodies.
const codelessBadRequest = "400 Bad Request"

// failed wraps an error of the server with the action and the key; nil stays nil. If ctx has ended, it wraps ctx.Err()
// instead.
func failed(ctx context.Context, action, key string, err error) error {
	if err == nil {
		return nil
	}
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("%s %s: %w", action, key, cause)
	}
	write := action == "put" || action == "create" || action == "delete"
	return fmt.Errorf("%s %s: %w", action, key, s3Error(err, write))
}

func s3Error(err error, write bool) error {
	if response, ok := errors.AsType[minio.ErrorResponse](err); ok {
		return answerError(response, write)
	}
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	switch {
	case errors.Is(err, ErrUnavailable): // of the keys
		return err
	case errors.As(err, &authority):
		return fmt.Errorf("%w: %w; set CAFile ($AWS_CA_BUNDLE) to the certificate of its authority", ErrCertificate, err)
	case errors.As(err, &certificate):
		return fmt.Errorf("%w: %w", ErrCertificate, err)
	case strings.Contains(err.Error(), "remote error: tls: certificate required"), strings.Contains(err.Error(), "remote error: tls: bad certificate"):
		return fmt.Errorf("%w: %w; set CertFile and KeyFile ($DDIFF_S3_CERT and $DDIFF_S3_KEY) to a client certificate of the server's authority", ErrAccess, err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		// The context of the caller is active, so the time limit of the request has passed.
		return fmt.Errorf("%w: request timed out", ErrUnavailable)
	case connectionBroke(err):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// connectionBroke reports whether err comes from the connection or from a truncated answer.
func connectionBroke(err error) bool {
	var transport *url.Error
	var network net.Error
	var syntax *xml.SyntaxError
	return errors.As(err, &transport) || errors.As(err, &network) || errors.As(err, &syntax) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

func answerError(r minio.ErrorResponse, write bool) error {
	detail := fmt.Errorf("%s (%s)", r.Error(), r.Code)
	if r.Code == minio.RequestTimeTooSkewed {
		detail = fmt.Errorf("%w: %w", errClock, detail)
	}
	if sentinel := codeSentinel(r.Code, write); sentinel != nil {
		return fmt.Errorf("%w: %w", sentinel, detail)
	}
	switch status := r.StatusCode; {
	case r.Code == minio.AuthorizationHeaderMalformed, r.Code == minio.InvalidRegion, r.Code == "PermanentRedirect":
		return fmt.Errorf("%w; the bucket is in region %q, set Region ($AWS_REGION)", detail, r.Region)
	case status >= http.StatusMultipleChoices && status < http.StatusBadRequest:
		return fmt.Errorf("%w: the server redirects; set Endpoint ($AWS_ENDPOINT_URL) and Region ($AWS_REGION) to those of the bucket: %w", ErrUnavailable, detail)
	case status == http.StatusUnauthorized, status == http.StatusForbidden, r.Code == codelessBadRequest && r.Message == codelessBadRequest:
		// Servers have codes of their own, and the answer to HEAD has none.
		if write {
			return fmt.Errorf("%w: %w", ErrReadOnly, detail)
		}
		return fmt.Errorf("%w: %w", ErrAccess, detail)
	case status == http.StatusInsufficientStorage:
		return fmt.Errorf("%w: %w", ErrNoSpace, detail)
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests,
		status >= http.StatusInternalServerError && status != http.StatusNotImplemented:
		return fmt.Errorf("%w: %w", ErrUnavailable, detail)
	}
	return detail
}

// codeSentinel returns the sentinel of an S3 error code, or nil if the HTTP status decides.
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
		"InvalidToken", "ExpiredToken", "RequestExpired", "TokenRefreshRequired", "NotSignedUp", "AccountProblem", "XAdminUserNotFound": // the last is versitygw's InvalidAccessKeyId
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
		minio.Conflict, // a status 409 without a code
		"SlowDown", "RequestTimeout", minio.InternalError:
		return ErrUnavailable
	}
	return nil
}

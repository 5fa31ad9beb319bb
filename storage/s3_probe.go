package storage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"ddiff/internal/retry"
)

const probeCleanup = 5 * time.Second

// checkBucket lists the bucket. Unlike a HEAD request, a listing distinguishes an unknown key, a wrong signature and a
// missing permission.
func (s *S3) checkBucket(ctx context.Context) error {
	err := s.whileBusy(ctx, func() error {
		_, err := s.listPage(ctx, s.prefix, "", 1)
		return err
	})
	if err != nil {
		return s.openError(ctx, err)
	}
	return nil
}

// whileBusy repeats a request of the opening while the server answers that it cannot serve it now. A server that does not answer at all
// may have a wrong address: its error returns at once.
func (s *S3) whileBusy(ctx context.Context, request func() error) error {
	delays := retry.NewBackOff(s.retry.Base, s.retry.Max)
	for attempt := 1; ; attempt++ {
		err := request()
		r, _ := errors.AsType[minio.ErrorResponse](err)
		busy := r.Code == codeConflict || r.StatusCode > http.StatusNotImplemented || r.StatusCode == http.StatusInternalServerError
		if !busy || attempt >= s.retry.Attempts || s.retry.Sleep(ctx, delays.NextBackOff()) != nil {
			return err
		}
	}
}

// openError adds a remedy to an error of checkBucket.
func (s *S3) openError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err = s3Error(err, false)
	var lookup *net.DNSError
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return fmt.Errorf("%w: the network has no host %s; give the server of bucket %q as s3://%s/PREFIX?endpoint=https://HOST or in AWS_ENDPOINT_URL",
			ErrUnavailable, lookup.Name, s.bucket, s.bucket)
	case errors.Is(err, ErrNoBucket):
		return fmt.Errorf("%w; create bucket %q or correct the name", err, s.bucket)
	case errors.Is(err, ErrAccess) && !errors.Is(err, errClock):
		return fmt.Errorf("%w; check the keys and their permission to list bucket %q", err, s.bucket)
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("%w; write the endpoint as http://", err)
	}
	return err
}

// probe creates one object twice. A server that honours the condition refuses the second request.
func (s *S3) probe(ctx context.Context) error {
	key := stateElement + "/probe-" + rand.Text()
	err := s.probeTwice(ctx, key)
	// The object may exist even if the answer was lost or ctx has ended.
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeCleanup)
	defer cancel()
	if removeErr := s.remove(cleanup, s.name(key)); err == nil && removeErr != nil {
		err = fmt.Errorf("delete probe %s: %w", key, s3Error(removeErr, true))
	}
	return err
}

func (s *S3) probeTwice(ctx context.Context, key string) error {
	for _, data := range []string{"first", "second"} {
		err := s.whileBusy(ctx, func() error { return s.send(ctx, key, []byte(data), rand.Text()) })
		response := minio.ToErrorResponse(err)
		switch {
		case data == "first" && (err == nil || response.Code == codePrecondition): // of an attempt without an answer
			continue
		case err == nil:
			return fmt.Errorf("%w: %s replaced an object despite \"If-None-Match: *\"; use another server", ErrNoConditionalWrites, s.endpoint)
		case response.Code == codePrecondition && data == "second":
			return nil
		case response.Code == minio.NotImplemented || response.StatusCode == http.StatusNotImplemented:
			return fmt.Errorf("%w: %s does not implement If-None-Match: %s (%s)",
				ErrNoConditionalWrites, s.endpoint, response.Error(), response.Code)
		}
		err = failed(ctx, "create", "probe "+key, err)
		if errors.Is(err, ErrReadOnly) {
			return fmt.Errorf("%w; permit writing, or open the store with ReadOnly", err)
		}
		return err
	}
	return nil
}

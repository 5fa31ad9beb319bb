package dataset

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"ddiff/storage"
)

type web struct {
	cfg    Config
	guard  guard
	client *retryablehttp.Client
}

// newWeb returns a client that refuses all connections that the configuration does not allow.
func newWeb(cfg Config) (*web, error) {
	w := &web{cfg: cfg, guard: guard{hosts: cfg.Hosts, networks: cfg.Networks, http: cfg.AllowHTTP}}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Control: w.guard.control}
	transport := &http.Transport{
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  cfg.Timeout,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        time.Minute,
		DisableCompression:     true, // the size of an answer must be known
		MaxResponseHeaderBytes: 64 << 10,
		ForceAttemptHTTP2:      true,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if cfg.CAFile != "" {
		pool, err := storage.Authorities(cfg.CAFile)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	w.client = &retryablehttp.Client{
		HTTPClient:   &http.Client{Transport: transport, CheckRedirect: w.guard.redirect},
		RetryWaitMin: firstWait, RetryWaitMax: lastWait, RetryMax: cfg.Attempts - 1,
		Backoff:      backoff,
		CheckRetry:   w.checkRetry,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	return w, nil
}

func (w *web) close() { w.client.HTTPClient.CloseIdleConnections() }

// checkRetry decides whether to retry a request. It is a retryablehttp.CheckRetry.
func (w *web) checkRetry(ctx context.Context, response *http.Response, err error) (bool, error) {
	if errors.Is(err, ErrRefused) {
		return false, nil
	}
	again, ended := retryablehttp.DefaultRetryPolicy(ctx, response, err)
	if again {
		attributes := []any{"error", withoutURL(err)}
		if response != nil {
			attributes = []any{"host", response.Request.URL.Host, "status", response.Status}
		}
		w.cfg.Logger.WarnContext(ctx, "web request failed", attributes...)
	}
	return again, ended
}

// backoff returns the wait before a retry: the wait that the server requests, at most the maximum.
func backoff(least, most time.Duration, attempt int, response *http.Response) time.Duration {
	return min(retryablehttp.DefaultBackoff(least, most, attempt, response), most)
}

// request requests a resource, or a range of it if size is positive. The caller closes the answer.
func (w *web) request(ctx context.Context, method string, a Address, offset, size int64, etag string) (r *answer, err error) {
	call, cancel := context.WithCancelCause(ctx)
	defer func() {
		if err != nil {
			cancel(nil)
		}
	}()
	request, err := retryablehttp.NewRequestWithContext(call, method, a.url.String(), nil)
	if err != nil {
		return nil, withoutURL(err)
	}
	request.Header.Set("Accept-Encoding", "identity")
	request.Header.Set("User-Agent", "ddiff")
	if size > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, offset+size-1))
	}
	if etag != "" {
		request.Header.Set("If-Match", etag)
	}
	response, err := w.client.Do(request)
	if err != nil {
		return nil, requestError(ctx, withoutURL(err))
	}
	err = statusError(response)
	if encoding := response.Header.Get("Content-Encoding"); err == nil && encoding != "" && !strings.EqualFold(encoding, "identity") {
		err = fmt.Errorf("%w: server sends unrequested encoding %q", ErrRefused, encoding)
	}
	if err != nil {
		response.Body.Close() // not read
		return nil, err
	}
	return &answer{Response: response, call: call, cancel: cancel}, nil
}

// requestError wraps the error of a request without an answer with the matching sentinel.
func requestError(ctx context.Context, err error) error {
	var certificate *tls.CertificateVerificationError
	var unknown *net.DNSError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrRefused):
		return err
	case errors.As(err, &certificate):
		return fmt.Errorf("%w: server certificate is not valid: %w", ErrRefused, certificate.Err)
	case errors.As(err, &unknown) && unknown.IsNotFound:
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

func statusError(response *http.Response) error {
	answer := fmt.Errorf("server answered %q", printable(response.Status))
	switch code := response.StatusCode; code {
	case http.StatusOK, http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable:
		return nil
	case http.StatusNotFound, http.StatusGone:
		return fmt.Errorf("%w: %w", ErrNotFound, answer)
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return fmt.Errorf("%w: %w", ErrDenied, answer)
	case http.StatusPreconditionFailed:
		return fmt.Errorf("%w: %w", ErrChanged, answer)
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusTooEarly:
		return fmt.Errorf("%w: %w", ErrUnavailable, answer)
	default:
		if code >= http.StatusInternalServerError {
			return fmt.Errorf("%w: %w", ErrUnavailable, answer)
		}
		return fmt.Errorf("%w: %w", ErrRefused, answer)
	}
}

// printable escapes and truncates text of a server.
func printable(text string) string {
	const limit = 80
	text = strconv.QuoteToASCII(text)
	text = text[1 : len(text)-1]
	return text[:min(len(text), limit)]
}

func (w *web) get(ctx context.Context, a Address, check Check) ([]byte, error) {
	return retryRead(ctx, w.cfg.Attempts, errBroken, func() ([]byte, error) {
		data, err := w.fetch(ctx, a, check)
		if errors.Is(err, errBroken) {
			w.cfg.Logger.WarnContext(ctx, "web transfer interrupted", "host", a.url.Host, "error", err)
		}
		return data, err
	})
}

func (w *web) fetch(ctx context.Context, a Address, check Check) ([]byte, error) {
	r, err := w.request(ctx, http.MethodGet, a, 0, 0, "")
	if err != nil {
		return nil, err
	}
	defer r.close()
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: unexpected answer: %s", ErrRefused, printable(r.Status))
	}
	return w.body(r, w.cfg.MaxBytes, check)
}

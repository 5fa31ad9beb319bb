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

	"ddiff/storage"
)

type web struct {
	cfg    Config
	guard  guard
	client *http.Client
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
	w.client = &http.Client{Transport: transport, CheckRedirect: w.guard.redirect}
	return w, nil
}

func (w *web) close() { w.client.CloseIdleConnections() }

// retryWeb calls read, which requests an address, again while its error is transient.
func retryWeb[T any](ctx context.Context, w *web, a Address, read func() (T, error)) (T, error) {
	return retryRead(ctx, w.cfg.Attempts, func() (T, error) {
		data, err := read()
		if errors.Is(err, ErrUnavailable) {
			w.cfg.Logger.WarnContext(ctx, "web request failed", "host", a.url.Host, "error", err)
		}
		return data, err
	})
}

// request requests a resource, or a range of it if size is positive. The caller closes the answer.
func (w *web) request(ctx context.Context, method string, a Address, offset, size int64, etag string) (r *answer, err error) {
	call, cancel := context.WithCancelCause(ctx)
	defer func() {
		if err != nil {
			cancel(nil)
		}
	}()
	request, err := http.NewRequestWithContext(call, method, a.url.String(), nil)
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
	return retryWeb(ctx, w, a, func() ([]byte, error) { return w.fetch(ctx, a, check) })
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

package dataset

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// web reads from web servers.
type web struct {
	cfg    Config
	guard  guard
	client *retryablehttp.Client
}

// newWeb returns a client that connects to nothing that the configuration does not allow.
func newWeb(cfg Config) (*web, error) {
	w := &web{cfg: cfg, guard: guard{hosts: cfg.Hosts, networks: cfg.Networks, http: cfg.AllowHTTP}}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Control: w.guard.control}
	transport := &http.Transport{
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  cfg.Timeout,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        time.Minute,
		DisableCompression:     true, // a small answer must not become a large file
		MaxResponseHeaderBytes: 64 << 10,
		ForceAttemptHTTP2:      true,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if cfg.Proxy {
		transport.Proxy = http.ProxyFromEnvironment
	}
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("field CAFile: %w", err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool() // a machine without authorities of its own
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("field CAFile: %s holds no PEM certificate", cfg.CAFile)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	w.client = &retryablehttp.Client{
		HTTPClient:   &http.Client{Transport: transport, CheckRedirect: w.guard.redirect},
		RetryWaitMin: firstWait, RetryWaitMax: lastWait, RetryMax: cfg.Attempts - 1,
		Backoff:      backoff,
		CheckRetry:   w.again,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	return w, nil
}

func (w *web) close() { w.client.HTTPClient.CloseIdleConnections() }

// again decides whether a request is repeated.
func (w *web) again(ctx context.Context, response *http.Response, err error) (bool, error) {
	if errors.Is(err, ErrRefused) {
		return false, nil
	}
	again, ended := retryablehttp.DefaultRetryPolicy(ctx, response, err)
	if again {
		attributes := []any{"error", plain(err)}
		if response != nil {
			attributes = []any{"host", response.Request.URL.Host, "status", response.Status}
		}
		w.cfg.Logger.WarnContext(ctx, "web request failed", attributes...)
	}
	return again, ended
}

// backoff is the wait before another request: what the server asks for, within reason.
func backoff(least, most time.Duration, attempt int, response *http.Response) time.Duration {
	return min(retryablehttp.DefaultBackoff(least, most, attempt, response), most)
}

// request asks for a resource, or for a part of it when size is positive. The caller closes the body.
func (w *web) request(ctx context.Context, method string, a Address, offset, size int64, etag string) (*http.Response, error) {
	request, err := retryablehttp.NewRequestWithContext(ctx, method, a.url.String(), nil)
	if err != nil {
		return nil, plain(err)
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
		return nil, requestError(ctx, plain(err))
	}
	if err := statusError(response); err != nil {
		response.Body.Close() // of an error
		return nil, err
	}
	if encoding := response.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		response.Body.Close() // it is not read
		return nil, fmt.Errorf("%w: the server sends it packed as %q, which was not asked for", ErrRefused, encoding)
	}
	return response, nil
}

// requestError puts a sentinel in front of the error of a request without an answer.
func requestError(ctx context.Context, err error) error {
	var certificate *tls.CertificateVerificationError
	var unknown *net.DNSError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrRefused):
		return err
	case errors.As(err, &certificate):
		return fmt.Errorf("%w: the server's certificate is not valid: %w", ErrRefused, certificate.Err)
	case errors.As(err, &unknown) && unknown.IsNotFound:
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// statusError puts a sentinel in front of an answer that is not the resource.
func statusError(response *http.Response) error {
	answer := fmt.Errorf("the server answered %q", printable(response.Status))
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

// printable keeps what another side says on one line and short.
func printable(text string) string {
	const most = 80
	text = strconv.QuoteToASCII(text)
	text = text[1 : len(text)-1]
	return text[:min(len(text), most)]
}

// get reads a resource whole. A transfer that breaks off is begun again.
func (w *web) get(ctx context.Context, a Address) ([]byte, error) {
	return retryRead(ctx, w.cfg.Attempts, errBroken, func() ([]byte, error) {
		data, err := w.fetch(ctx, a)
		if errors.Is(err, errBroken) {
			w.cfg.Logger.WarnContext(ctx, "web transfer broke off", "host", a.url.Host, "error", err)
		}
		return data, err
	})
}

// errBroken is a transfer that began well and then broke off. It is ErrUnavailable too.
var errBroken = errors.New("the transfer broke off")

// errLate is a transfer that took too long.
var errLate = errors.New("it took too long")

func (w *web) fetch(ctx context.Context, a Address) ([]byte, error) {
	call, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	response, err := w.request(call, http.MethodGet, a, 0, 0, "")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() // opened for reading
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: an answer to another question: %s", ErrRefused, printable(response.Status))
	}
	return w.body(call, cancel, response, w.cfg.MaxBytes)
}

// transferError is why a transfer ended that call was the context of: nil when it ended well.
// A server that sees the connection close may end an answer properly that is not at its end, so
// an interrupted transfer is never a good one.
func transferError(call context.Context, err error) error {
	switch {
	case errors.Is(context.Cause(call), errLate):
		return fmt.Errorf("%w: %w: %w", ErrUnavailable, errBroken, errLate)
	case call.Err() != nil:
		return call.Err()
	case err != nil:
		return fmt.Errorf("%w: %w: %w", ErrUnavailable, errBroken, err)
	}
	return nil
}

// body reads an answer of at most limit bytes; cancel ends it when it takes too long.
func (w *web) body(call context.Context, cancel context.CancelCauseFunc, response *http.Response, limit int64) ([]byte, error) {
	size := response.ContentLength
	if size > limit {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are read", ErrTooLarge, size, limit)
	}
	expected := size
	if size < 0 {
		expected = limit
	}
	defer w.limit(cancel, expected)()
	var buf bytes.Buffer
	if size > 0 {
		buf.Grow(int(size) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(io.LimitReader(response.Body, limit+1))
	if err := transferError(call, err); err != nil {
		return nil, err
	}
	if int64(buf.Len()) > limit {
		return nil, fmt.Errorf("%w: at most %d bytes are read", ErrTooLarge, limit)
	}
	return buf.Bytes(), nil
}

// limit ends the transfer of size bytes when it takes too long; the function that it returns
// is for its end.
func (w *web) limit(cancel context.CancelCauseFunc, size int64) func() bool {
	budget := w.cfg.Timeout + time.Duration(size>>20)*time.Second
	return time.AfterFunc(budget, func() { cancel(errLate) }).Stop
}

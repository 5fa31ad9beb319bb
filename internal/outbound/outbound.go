// Package outbound has the HTTP client of requests that carry secrets, such as tokens and keys: it speaks to the server of a request alone.
package outbound

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// errTooLong is the error of an answer with more bytes than its client takes.
var errTooLong = errors.New("the answer is too long")

// Client returns a client that follows no redirect, which could lead the secret to another server, and takes at most limit bytes of the body of an
// answer; more are an error. Without a transport it has the default one.
func Client(transport http.RoundTripper, limit int64) *http.Client {
	return &http.Client{
		Transport:     bounded{cmp.Or(transport, http.DefaultTransport), limit},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// bounded bounds the bodies of answers.
type bounded struct {
	http.RoundTripper
	limit int64
}

// RoundTrip implements [http.RoundTripper].
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = &body{answer.Body, b.limit, b.limit}
	}
	return answer, err
}

// body is a body with a limit.
type body struct {
	io.ReadCloser
	limit, left int64
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("%w: it has more than %d bytes", errTooLong, b.limit)
	}
	return n, err
}

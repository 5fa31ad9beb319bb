package storage_test

import (
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/minio/minio-go/v7/pkg/signer"

	"ddiff/storage"
)

// proxied is a server behind a proxy with replaceable behaviour.
type proxied struct {
	config storage.S3Config
	// direct bypasses the proxy.
	direct storage.S3Config
	handle atomic.Pointer[handler]
}

// handler handles a request; forward sends it to the server.
type handler func(w http.ResponseWriter, r *http.Request, forward http.Handler)

// startProxied starts a server and a proxy that forwards all requests. The configurations have no retries.
func startProxied(t *testing.T) *proxied {
	t.Helper()
	config := startS3(t)
	config.Retry.Attempts = 1
	p := &proxied{config: config, direct: config}
	p.set(pass)
	target, err := url.Parse(config.Endpoint)
	must(t, err)
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // part of the signature
		},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(*p.handle.Load())(w, r, forward)
	}))
	t.Cleanup(proxy.Close)
	p.config.Endpoint = proxy.URL
	return p
}

func (p *proxied) set(h handler) { p.handle.Store(&h) }

// pass forwards a request and its answer unchanged.
func pass(w http.ResponseWriter, r *http.Request, forward http.Handler) { forward.ServeHTTP(w, r) }

// loseAnswer forwards a request and breaks the connection instead of answering.
func loseAnswer(_ http.ResponseWriter, r *http.Request, forward http.Handler) {
	forward.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// answer returns a handler that answers with an S3 error without forwarding.
func answer(status int, code string) handler {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // an unread body would break the connection
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		io.WriteString(w, "<Error><Code>"+code+"</Code><Message>simulated</Message></Error>") //nolint:errcheck // a test
	}
}

// changeAnswer returns a handler that forwards a request and changes the body of the answer.
func changeAnswer(change func(body []byte) []byte) handler {
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		recorder := httptest.NewRecorder()
		forward.ServeHTTP(recorder, r)
		maps.Copy(w.Header(), recorder.Header())
		w.WriteHeader(recorder.Code)
		body := change(recorder.Body.Bytes())
		w.Write(body) //nolint:errcheck // a test
		if len(body) < recorder.Body.Len() {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	}
}

// first returns a handler that applies h to the first n requests of a method and forwards all others. The counter
// counts the requests of the method.
func first(n int64, method string, h handler) (handler, *atomic.Int64) {
	var count atomic.Int64
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if r.Method == method && count.Add(1) <= n {
			h(w, r, forward)
			return
		}
		forward.ServeHTTP(w, r)
	}, &count
}

// ignoreCondition returns a handler that removes the condition of a write.
func ignoreCondition(config storage.S3Config) handler {
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		forward.ServeHTTP(w, without(r, "If-None-Match", config))
	}
}

// without removes a header of a request and signs the request again.
func without(r *http.Request, header string, config storage.S3Config) *http.Request {
	r.Header.Del(header)
	r.Header.Del("Authorization")
	r.URL.Host = r.Host
	return signer.SignV4(*r, config.AccessKey, config.SecretKey, "", config.Region)
}
